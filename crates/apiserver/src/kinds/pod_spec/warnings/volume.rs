//! What is odd about volumes: storage that is gone, and files that hide each other.

use k8s_openapi::api::core::v1::{PodSpec, Volume, VolumeProjection};
use kubewright_apimachinery::field::Path;
use kubewright_apimachinery::json::go_quote;

use super::of_bytes;

pub(super) fn tell(spec: &PodSpec, path: &Path<'_>, warnings: &mut Vec<String>) {
    let path = path.child("volumes");
    for (index, volume) in spec.volumes.iter().flatten().enumerate() {
        warnings.extend(of_source(volume, &path.index(index)));
    }
    for volume in spec.volumes.iter().flatten() {
        warnings.extend(of_files(volume));
    }
}

fn of_source(volume: &Volume, path: &Path<'_>) -> Vec<String> {
    let gone = [
        (
            "photonPersistentDisk",
            volume.photon_persistent_disk.is_some(),
            "deprecated in v1.11, non-functional in v1.16+",
        ),
        (
            "gitRepo",
            volume.git_repo.is_some(),
            "deprecated in v1.11, and disabled by default in v1.33+",
        ),
        ("scaleIO", volume.scale_io.is_some(), "deprecated in v1.16, non-functional in v1.22+"),
        ("flocker", volume.flocker.is_some(), "deprecated in v1.22, non-functional in v1.25+"),
        ("storageOS", volume.storageos.is_some(), "deprecated in v1.22, non-functional in v1.25+"),
        ("quobyte", volume.quobyte.is_some(), "deprecated in v1.22, non-functional in v1.25+"),
        ("glusterfs", volume.glusterfs.is_some(), "deprecated in v1.25, non-functional in v1.26+"),
    ];
    let gone_later = [
        ("cephfs", volume.cephfs.is_some(), "deprecated in v1.28, non-functional in v1.31+"),
        ("rbd", volume.rbd.is_some(), "deprecated in v1.28, non-functional in v1.31+"),
    ];
    let tell = |sources: &[(&str, bool, &str)]| {
        let given = sources.iter().filter(|(_, is_given, _)| *is_given);
        given.map(|(name, _, message)| format!("{}: {message}", path.child(name))).collect()
    };
    let mut warnings: Vec<String> = tell(&gone);
    let template = volume.ephemeral.as_ref().and_then(|e| e.volume_claim_template.as_ref());
    if let Some(resources) = template.and_then(|template| template.spec.resources.as_ref()) {
        let path = path.child("ephemeral");
        let path = path.child("volumeClaimTemplate");
        let path = path.child("spec");
        let path = path.child("resources");
        let (requests, limits) = (resources.requests.as_ref(), resources.limits.as_ref());
        warnings.extend(of_bytes(requests, "storage", &path.child("requests")));
        warnings.extend(of_bytes(limits, "storage", &path.child("limits")));
    }
    let later: Vec<String> = tell(&gone_later);
    warnings.extend(later);
    warnings
}

/// A file, and where it comes from if that needs saying.
#[derive(Debug, Clone, PartialEq, Eq)]
struct File {
    path: String,
    source: String,
}

impl File {
    fn new(path: &str, source: &str) -> Self {
        File { path: path.trim_end_matches('/').to_owned(), source: source.to_owned() }
    }

    fn describe(&self) -> String {
        match self.source.as_str() {
            "" => go_quote(&self.path),
            source => format!("{} ({source})", go_quote(&self.path)),
        }
    }

    fn overlaps(&self, other: &File) -> bool {
        let (own, others) = (format!("{}/", self.path), format!("{}/", other.path));
        !self.path.is_empty()
            && !other.path.is_empty()
            && (own.starts_with(&others) || others.starts_with(&own))
    }
}

fn of_files(volume: &Volume) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut tell = |what: &str, files: Vec<File>| {
        for (index, file) in files.iter().enumerate() {
            for other in files[..index].iter().filter(|other| file.overlaps(other)) {
                warnings.push(format!(
                    "volume {} ({what}): overlapping paths: {} with {}",
                    go_quote(&volume.name),
                    file.describe(),
                    other.describe()
                ));
            }
        }
    };
    if let Some(map) = &volume.config_map {
        let items = map.items.iter().flatten();
        let files = items.map(|item| File::new(&item.path, "")).collect();
        tell(&format!("ConfigMap {}", go_quote(&map.name)), files);
    }
    if let Some(secret) = &volume.secret {
        let items = secret.items.iter().flatten();
        let files = items.map(|item| File::new(&item.path, "")).collect();
        let name = secret.secret_name.as_deref().unwrap_or_default();
        tell(&format!("Secret {}", go_quote(name)), files);
    }
    if let Some(downward) = &volume.downward_api {
        let items = downward.items.iter().flatten();
        tell("DownwardAPI", items.map(|item| File::new(&item.path, "")).collect());
    }
    let sources = volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten());
    let empty = sources.clone().filter(|source| **source == VolumeProjection::default()).count();
    tell("Projected", sources.flat_map(projected_files).collect());
    for _ in 0..empty {
        let quoted = go_quote(&volume.name);
        warnings.push(format!("volume {quoted} (Projected) has no sources provided"));
    }
    warnings
}

/// The files of the first source that has any.
fn projected_files(source: &VolumeProjection) -> Vec<File> {
    if let Some((map, items)) =
        source.config_map.as_ref().and_then(|map| Some((map, map.items.as_ref()?)))
    {
        let from = format!("ConfigMap {}", go_quote(&map.name));
        return items.iter().map(|item| File::new(&item.path, &from)).collect();
    }
    if let Some((secret, items)) =
        source.secret.as_ref().and_then(|secret| Some((secret, secret.items.as_ref()?)))
    {
        let from = format!("Secret {}", go_quote(&secret.name));
        return items.iter().map(|item| File::new(&item.path, &from)).collect();
    }
    if let Some(items) = source.downward_api.as_ref().and_then(|d| d.items.as_ref()) {
        return items.iter().map(|item| File::new(&item.path, "DownwardAPI")).collect();
    }
    let token = source.service_account_token.iter();
    token.map(|token| File::new(&token.path, "ServiceAccountToken")).collect()
}
