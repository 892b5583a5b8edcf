//! Paths of files: within a volume, they may not lead out of it.

use kubewright_apimachinery::field::{Error, Path};

use crate::kinds::check;

/// A path below another, to which it is relative.
pub(super) fn descending(path: &Path<'_>, file: &str) -> Vec<Error> {
    let mut errors = Vec::new();
    if file.starts_with('/') {
        errors.push(Error::invalid(path, file, "must be a relative path"));
    }
    errors.extend(without_backsteps(path, file));
    errors
}

/// As [`descending`], and not one of the names that volumes keep to themselves.
pub(super) fn unreserved(path: &Path<'_>, file: &str) -> Vec<Error> {
    let mut errors = descending(path, file);
    if file.starts_with("..") && !file.starts_with("../") {
        errors.push(Error::invalid(path, file, "must not start with '..'"));
    }
    errors
}

pub(super) fn without_backsteps(path: &Path<'_>, file: &str) -> Option<Error> {
    let steps_back = file.split('/').any(|step| step == "..");
    steps_back.then(|| Error::invalid(path, file, "must not contain '..'"))
}

/// Permissions of a file.
pub(super) fn mode(path: &Path<'_>, mode: Option<i32>) -> Option<Error> {
    let mode = mode.filter(|mode| !(0..=0o777).contains(mode))?;
    let problem = "must be a number between 0 and 0777 (octal), both inclusive";
    Some(Error::invalid(path, mode, problem))
}

/// The name of a key and of the file that it becomes.
pub(super) fn key_to_path(
    path: &Path<'_>,
    item: &k8s_openapi::api::core::v1::KeyToPath,
) -> Vec<Error> {
    let mut errors = Vec::new();
    errors.extend(check::required(&path.child("key"), &item.key));
    errors.extend(check::required(&path.child("path"), &item.path));
    errors.extend(unreserved(&path.child("path"), &item.path));
    errors.extend(mode(&path.child("mode"), item.mode));
    errors
}
