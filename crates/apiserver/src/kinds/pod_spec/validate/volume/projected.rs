//! Projected volumes: files of several sources in one folder, where they may not get into each
//! other's way.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{
    KeyToPath, ProjectedVolumeSource, ServiceAccountTokenProjection, VolumeProjection,
};
use kubewright_apimachinery::field::{Error, Path};

use super::downward_file;
use crate::kinds::check::{self, list};
use crate::kinds::pod_spec::validate::{Allowed, file};

const TOKEN_SECONDS_MIN: i64 = 10 * 60;
const TOKEN_SECONDS_MAX: i64 = 1 << 32;

pub(super) fn validate(
    source: &ProjectedVolumeSource,
    path: &Path<'_>,
    allowed: &Allowed,
) -> Vec<Error> {
    let mut folder = Folder { path, files: BTreeSet::new(), errors: Vec::new() };
    folder.errors.extend(file::mode(&path.child("defaultMode"), source.default_mode));
    let sources_path = path.child("sources");
    for (index, source) in list(&source.sources).iter().enumerate() {
        folder.add(source, &sources_path.index(index), allowed);
    }
    folder.errors
}

/// Whether the old spec has tokens in places where new ones may not be.
pub(in crate::kinds::pod_spec::validate) fn has_stray_token(
    source: &ProjectedVolumeSource,
) -> bool {
    let tokens = list(&source.sources).iter().filter_map(|s| s.service_account_token.as_ref());
    tokens.into_iter().any(|token| !file::unreserved(&Path::ROOT, &token.path).is_empty())
}

struct Folder<'a> {
    path: &'a Path<'a>,
    files: BTreeSet<&'a str>,
    errors: Vec<Error>,
}

impl<'a> Folder<'a> {
    fn add(&mut self, source: &'a VolumeProjection, path: &Path<'_>, allowed: &Allowed) {
        if let Some(secret) = &source.secret {
            self.add_keys(&secret.name, list(&secret.items), &path.child("secret"));
        }
        if let Some(map) = &source.config_map {
            self.add_keys(&map.name, list(&map.items), &path.child("configMap"));
        }
        if let Some(downward) = &source.downward_api {
            for item in list(&downward.items) {
                self.errors.extend(downward_file(item, &path.child("downwardAPI")));
                self.add_file(&item.path, &item.path);
            }
        }
        if let Some(token) = &source.service_account_token {
            self.add_token(token, &path.child("serviceAccountToken"), allowed);
        }
        let count = usize::from(source.secret.is_some())
            + usize::from(source.config_map.is_some())
            + usize::from(source.downward_api.is_some())
            + usize::from(source.service_account_token.is_some());
        if count > 1 {
            let problem = "may not specify more than 1 volume type per source";
            self.errors.push(Error::forbidden(path, problem));
        }
    }

    fn add_keys(&mut self, name: &'a str, items: &'a [KeyToPath], path: &Path<'_>) {
        self.errors.extend(check::required(&path.child("name"), name));
        let path = path.child("items");
        for (index, item) in items.iter().enumerate() {
            self.errors.extend(file::key_to_path(&path.index(index), item));
            self.add_file(&item.path, name);
        }
    }

    /// Upstream shows the name of the source, not of the file, in some of these errors.
    fn add_file(&mut self, file: &'a str, shown: &str) {
        if !file.is_empty() && !self.files.insert(file) {
            self.errors.push(Error::invalid(self.path, shown, "conflicting duplicate paths"));
        }
    }

    fn add_token(
        &mut self,
        token: &ServiceAccountTokenProjection,
        path: &Path<'_>,
        allowed: &Allowed,
    ) {
        let seconds = token.expiration_seconds.unwrap_or_default();
        let seconds_path = path.child("expirationSeconds");
        if seconds < TOKEN_SECONDS_MIN {
            let problem = "may not specify a duration less than 10 minutes";
            self.errors.push(Error::invalid(&seconds_path, seconds, problem));
        }
        if seconds > TOKEN_SECONDS_MAX {
            let problem = "may not specify a duration larger than 2^32 seconds";
            self.errors.push(Error::invalid(&seconds_path, seconds, problem));
        }
        // Upstream leaves out which of the sources it is.
        let file_path = self.path.child("path");
        if token.path.is_empty() {
            self.errors.push(Error::required(&file_path, ""));
        } else if !allowed.stray_tokens {
            self.errors.extend(file::unreserved(&file_path, &token.path));
        }
    }
}
