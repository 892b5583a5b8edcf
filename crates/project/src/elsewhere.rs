//! Kinds that a project does not define and may attend to all the same: those of Kubernetes, and
//! those whose types were imported into it.

use std::any::TypeId;
use std::path::{Path, PathBuf};

use k8s_openapi::{NamespaceResourceScope, Resource};
use syn::visit::{self, Visit};
use syn::{Item, ItemImpl, ItemMod, Lit, Type, Visibility};

use crate::change::Draft;
use crate::import;
use crate::name;
use crate::project::{LIBRARY, ProjectError, in_file};
use crate::source;

/// A kind that something else defines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) namespaced: bool,
    /// Of its type, for the sources of a project.
    pub(crate) path: String,
    /// A module around it that the rest of the project cannot see, and where it is declared.
    pub(crate) hidden_by: Option<(PathBuf, String)>,
}

macro_rules! kinds_of_kubernetes {
    ($($($word:ident)::+,)*) => {
        /// The kinds of Kubernetes that have a type: all that can be listed, but ComponentStatus, of
        /// which nothing is kept.
        pub(crate) fn built_in() -> Vec<Known> {
            // How the words of a path are laid out is the compiler's affair.
            let path = |words: &str| source::without_space(&format!("k8s_openapi::{words}"));
            vec![$(kind_of_kubernetes::<k8s_openapi::$($word)::+>(path(stringify!($($word)::+))),)*]
        }
    };
}

kinds_of_kubernetes! {
    api::admissionregistration::v1::MutatingAdmissionPolicy,
    api::admissionregistration::v1::MutatingAdmissionPolicyBinding,
    api::admissionregistration::v1::MutatingWebhookConfiguration,
    api::admissionregistration::v1::ValidatingAdmissionPolicy,
    api::admissionregistration::v1::ValidatingAdmissionPolicyBinding,
    api::admissionregistration::v1::ValidatingWebhookConfiguration,
    api::admissionregistration::v1alpha1::MutatingAdmissionPolicy,
    api::admissionregistration::v1alpha1::MutatingAdmissionPolicyBinding,
    api::admissionregistration::v1beta1::MutatingAdmissionPolicy,
    api::admissionregistration::v1beta1::MutatingAdmissionPolicyBinding,
    api::apiserverinternal::v1alpha1::StorageVersion,
    api::apps::v1::ControllerRevision,
    api::apps::v1::DaemonSet,
    api::apps::v1::Deployment,
    api::apps::v1::ReplicaSet,
    api::apps::v1::StatefulSet,
    api::autoscaling::v1::HorizontalPodAutoscaler,
    api::autoscaling::v2::HorizontalPodAutoscaler,
    api::batch::v1::CronJob,
    api::batch::v1::Job,
    api::certificates::v1::CertificateSigningRequest,
    api::certificates::v1alpha1::ClusterTrustBundle,
    api::certificates::v1beta1::ClusterTrustBundle,
    api::certificates::v1beta1::PodCertificateRequest,
    api::coordination::v1::Lease,
    api::coordination::v1alpha2::LeaseCandidate,
    api::coordination::v1beta1::LeaseCandidate,
    api::core::v1::ConfigMap,
    api::core::v1::Endpoints,
    api::core::v1::Event,
    api::core::v1::LimitRange,
    api::core::v1::Namespace,
    api::core::v1::Node,
    api::core::v1::PersistentVolume,
    api::core::v1::PersistentVolumeClaim,
    api::core::v1::Pod,
    api::core::v1::PodTemplate,
    api::core::v1::ReplicationController,
    api::core::v1::ResourceQuota,
    api::core::v1::Secret,
    api::core::v1::Service,
    api::core::v1::ServiceAccount,
    api::discovery::v1::EndpointSlice,
    api::events::v1::Event,
    api::flowcontrol::v1::FlowSchema,
    api::flowcontrol::v1::PriorityLevelConfiguration,
    api::networking::v1::Ingress,
    api::networking::v1::IngressClass,
    api::networking::v1::IPAddress,
    api::networking::v1::NetworkPolicy,
    api::networking::v1::ServiceCIDR,
    api::networking::v1beta1::IPAddress,
    api::networking::v1beta1::ServiceCIDR,
    api::node::v1::RuntimeClass,
    api::policy::v1::PodDisruptionBudget,
    api::rbac::v1::ClusterRole,
    api::rbac::v1::ClusterRoleBinding,
    api::rbac::v1::Role,
    api::rbac::v1::RoleBinding,
    api::resource::v1::DeviceClass,
    api::resource::v1::ResourceClaim,
    api::resource::v1::ResourceClaimTemplate,
    api::resource::v1::ResourceSlice,
    api::resource::v1alpha3::DeviceTaintRule,
    api::resource::v1alpha3::ResourcePoolStatusRequest,
    api::resource::v1beta1::DeviceClass,
    api::resource::v1beta1::ResourceClaim,
    api::resource::v1beta1::ResourceClaimTemplate,
    api::resource::v1beta1::ResourceSlice,
    api::resource::v1beta2::DeviceClass,
    api::resource::v1beta2::DeviceTaintRule,
    api::resource::v1beta2::ResourceClaim,
    api::resource::v1beta2::ResourceClaimTemplate,
    api::resource::v1beta2::ResourceSlice,
    api::scheduling::v1::PriorityClass,
    api::scheduling::v1alpha2::PodGroup,
    api::scheduling::v1alpha2::Workload,
    api::storage::v1::CSIDriver,
    api::storage::v1::CSINode,
    api::storage::v1::CSIStorageCapacity,
    api::storage::v1::StorageClass,
    api::storage::v1::VolumeAttachment,
    api::storage::v1::VolumeAttributesClass,
    api::storage::v1beta1::VolumeAttributesClass,
    api::storagemigration::v1beta1::StorageVersionMigration,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    kube_aggregator::pkg::apis::apiregistration::v1::APIService,
}

fn kind_of_kubernetes<K: Resource<Scope: 'static>>(path: String) -> Known {
    Known {
        group: K::GROUP.to_owned(),
        version: K::VERSION.to_owned(),
        kind: K::KIND.to_owned(),
        plural: K::URL_PATH_SEGMENT.to_owned(),
        namespaced: TypeId::of::<K::Scope>() == TypeId::of::<NamespaceResourceScope>(),
        path,
        hidden_by: None,
    }
}

/// Whether this is what somebody means who says `group`. Groups of Kubernetes are also known by what
/// they begin with, as `networking`, and the one without a name is `core`.
pub(crate) fn is_group(whole: &str, group: &str) -> bool {
    let is_short = || {
        let rest = whole.strip_prefix(group).and_then(|rest| rest.strip_prefix('.'));
        rest.is_some_and(|rest| rest == "k8s.io" || rest.ends_with(".k8s.io"))
    };
    whole == group || whole.is_empty() && group == "core" || !group.is_empty() && is_short()
}

/// What people call a group.
pub(crate) fn group_name(group: &str) -> &str {
    if group.is_empty() { "core" } else { group }
}

/// What the module may be called that attends to a kind, the first being the one that it is called
/// if nothing else is.
pub(crate) fn modules(known: &Known) -> [String; 2] {
    let module = name::module(&known.kind);
    let group = group_name(&known.group).split('.').next().unwrap_or_default().replace('-', "_");
    let longer = format!("{group}_{module}");
    [module, longer]
}

/// The kinds whose types were imported into a project: those of generated sources that its library
/// has among its modules.
pub(crate) fn imported(draft: &mut Draft<'_>) -> Result<Vec<Known>, ProjectError> {
    let mut known = Vec::new();
    let mut waiting = vec![Place {
        path: "crate".to_owned(),
        file: LIBRARY.into(),
        folder: "src".into(),
        hidden_by: None,
    }];
    while let Some(place) = waiting.pop() {
        let Some(text) = draft.read(&place.file)? else { continue };
        if import::is_generated(&text) {
            known.extend(kinds(&text, &place)?);
            continue;
        }
        let file = source::parse(&text).map_err(|error| in_file(&place.file, error))?;
        for item in &file.items {
            let Item::Mod(module) = item else { continue };
            // What is in place was not generated there.
            if module.content.is_none() {
                waiting.push(place.within(module, draft)?);
            }
        }
    }
    known.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(known)
}

/// A module of a project.
struct Place {
    path: String,
    file: PathBuf,
    /// Where the modules within it are.
    folder: PathBuf,
    hidden_by: Option<(PathBuf, String)>,
}

impl Place {
    fn within(&self, module: &ItemMod, draft: &mut Draft<'_>) -> Result<Place, ProjectError> {
        let word = module.ident.to_string();
        let name = word.trim_start_matches("r#");
        let folder = self.folder.join(name);
        let beside = self.folder.join(format!("{name}.rs"));
        let file = match draft.read(&beside)? {
            Some(_) => beside,
            None => folder.join("mod.rs"),
        };
        // The whole crate is within its root.
        let is_seen = self.file == Path::new(LIBRARY) || is_seen(&module.vis);
        let hidden_by = self.hidden_by.clone();
        Ok(Place {
            path: format!("{}::{word}", self.path),
            hidden_by: hidden_by.or((!is_seen).then(|| (self.file.clone(), word))),
            file,
            folder,
        })
    }
}

fn is_seen(visibility: &Visibility) -> bool {
    match visibility {
        Visibility::Public(_) => true,
        Visibility::Restricted(to) => to.path.is_ident("crate"),
        Visibility::Inherited => false,
    }
}

/// The kinds of a generated source.
fn kinds(text: &str, place: &Place) -> Result<Vec<Known>, ProjectError> {
    let file = source::parse(text).map_err(|error| in_file(&place.file, error))?;
    let mut search = Search { place, path: place.path.clone(), known: Vec::new() };
    search.visit_file(&file);
    Ok(search.known)
}

struct Search<'a> {
    place: &'a Place,
    path: String,
    known: Vec<Known>,
}

impl Visit<'_> for Search<'_> {
    /// Of several versions, each has a module.
    fn visit_item_mod(&mut self, module: &ItemMod) {
        let outside = self.path.clone();
        self.path = format!("{outside}::{}", module.ident);
        visit::visit_item_mod(self, module);
        self.path = outside;
    }

    fn visit_item_impl(&mut self, item: &ItemImpl) {
        let is_resource = item.trait_.as_ref().is_some_and(|(path, _)| path.is_ident("Resource"));
        let Type::Path(type_) = &*item.self_ty else { return };
        let Some(name) = type_.path.get_ident().filter(|_| is_resource) else { return };
        let known = || {
            Some(Known {
                group: said(item, "group")?,
                version: said(item, "version")?,
                kind: said(item, "kind")?,
                plural: said(item, "plural")?,
                namespaced: is_namespaced(item),
                path: format!("{}::{name}", self.path),
                hidden_by: self.place.hidden_by.clone(),
            })
        };
        self.known.extend(known());
    }
}

/// The text that a function of a generated `Resource` gives.
fn said(item: &ItemImpl, function: &str) -> Option<String> {
    struct Text(Option<String>);
    impl Visit<'_> for Text {
        fn visit_lit(&mut self, literal: &Lit) {
            if let Lit::Str(text) = literal {
                self.0 = Some(text.value());
            }
        }
    }
    let mut text = Text(None);
    for item in &item.items {
        match item {
            syn::ImplItem::Fn(found) if found.sig.ident == function => {
                text.visit_block(&found.block);
            }
            _ => {}
        }
    }
    text.0
}

fn is_namespaced(item: &ItemImpl) -> bool {
    item.items.iter().any(|item| match item {
        syn::ImplItem::Type(scope) if scope.ident == "Scope" => match &scope.ty {
            Type::Path(path) => path.path.is_ident("NamespaceResourceScope"),
            _ => false,
        },
        _ => false,
    })
}
