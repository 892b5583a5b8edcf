//! Writes to objects of any kind, in a namespace or in none: `kube`'s own interface wants to know
//! which when it is compiled.

use kube::api::{DeleteParams, GetParams, Patch, PatchParams, PostParams};
use kube::core::Request;
use kube::{Client, Error};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::informer::Object;

/// Where the objects of a kind are.
pub(crate) struct Endpoint<'c> {
    client: &'c Client,
    request: Request,
}

impl<'c> Endpoint<'c> {
    pub(crate) fn of<K: Object<DynamicType = ()>>(
        client: &'c Client,
        namespace: Option<&str>,
    ) -> Self {
        Endpoint { client, request: Request::new(K::url_path(&(), namespace)) }
    }

    /// The same for a kind that is known by its path only.
    pub(crate) fn at(client: &'c Client, path: &str) -> Self {
        Endpoint { client, request: Request::new(path) }
    }

    pub(crate) async fn create<K: Object + Serialize>(
        &self,
        manager: &str,
        object: &K,
    ) -> Result<K, Error> {
        let body = serde_json::to_vec(object).map_err(Error::SerdeError)?;
        let params =
            PostParams { field_manager: Some(manager.to_owned()), ..PostParams::default() };
        let request = self.request.create(&params, body);
        self.client.request(request.map_err(Error::BuildRequest)?).await
    }

    /// The object of a name; of its metadata alone, if `K` has no more.
    pub(crate) async fn get<K: DeserializeOwned>(&self, name: &str) -> Result<K, Error> {
        let request = self.request.get(name, &GetParams::default());
        self.client.request(request.map_err(Error::BuildRequest)?).await
    }

    /// Puts an object, or a part of it that has an address of its own, in the place of what is
    /// there.
    pub(crate) async fn replace<K: Object>(
        &self,
        name: &str,
        part: Option<&str>,
        manager: &str,
        object: &Value,
    ) -> Result<K, Error> {
        let body = serde_json::to_vec(object).map_err(Error::SerdeError)?;
        let params =
            PostParams { field_manager: Some(manager.to_owned()), ..PostParams::default() };
        let request = match part {
            Some(part) => self.request.replace_subresource(part, name, &params, body),
            None => self.request.replace(name, &params, body),
        };
        self.client.request(request.map_err(Error::BuildRequest)?).await
    }

    pub(crate) async fn apply<K: Object>(
        &self,
        name: &str,
        manager: &str,
        wanted: &Value,
    ) -> Result<K, Error> {
        let params = PatchParams::apply(manager).force();
        let request = self.request.patch(name, &params, &Patch::Apply(wanted));
        self.client.request(request.map_err(Error::BuildRequest)?).await
    }

    pub(crate) async fn merge<K: Object>(
        &self,
        name: &str,
        manager: &str,
        patch: &Value,
    ) -> Result<K, Error> {
        let request = self.request.patch(name, &params(manager), &Patch::Merge(patch));
        self.client.request(request.map_err(Error::BuildRequest)?).await
    }

    pub(crate) async fn merge_status<K: Object>(
        &self,
        name: &str,
        manager: &str,
        patch: &Value,
    ) -> Result<K, Error> {
        let (params, patch) = (params(manager), Patch::Merge(patch));
        let request = self.request.patch_subresource("status", name, &params, &patch);
        self.client.request(request.map_err(Error::BuildRequest)?).await
    }

    pub(crate) async fn delete(&self, name: &str, params: &DeleteParams) -> Result<(), Error> {
        let request = self.request.delete(name, params);
        // The object as it is while it goes, or that it is gone: nobody asks which.
        self.client.request_text(request.map_err(Error::BuildRequest)?).await.map(drop)
    }
}

fn params(manager: &str) -> PatchParams {
    PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() }
}
