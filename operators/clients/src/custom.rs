//! Custom resources: by a name alone, and by a type.

use at::At;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::{Client, Error};

/// An `At` by one who knows only what it is called.
pub async fn get_dynamic(
    client: &Client,
    namespace: &str,
    name: &str,
) -> Result<DynamicObject, Error> {
    let kind = GroupVersionKind::gvk("cnat.programming-kubernetes.info", "v1alpha1", "At");
    let resource = ApiResource::from_gvk_with_plural(&kind, "ats");
    Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &resource).get(name).await
}

/// The same by one who has its type.
pub async fn get_typed(client: &Client, namespace: &str, name: &str) -> Result<At, Error> {
    Api::<At>::namespaced(client.clone(), namespace).get(name).await
}
