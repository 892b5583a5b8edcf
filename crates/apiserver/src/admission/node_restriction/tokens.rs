//! Tokens that a node asks for: each is bound to one of its pods, and for whom the pod wants it.

use kubewright_apimachinery::json::go_quote;
use serde_json::Value;

use super::{Write, missing};
use crate::admission::{Operation, items, text};
use crate::authz::{self, Decision, aggregate};
use crate::meta;
use crate::references;
use crate::refusal::Refusal;

/// What a node may be allowed besides: tokens for these audiences, whatever its pods say.
const VERB: &str = "request-serviceaccounts-token-audience";

/// The CSI drivers that took the place of kinds of volumes.
const MIGRATED: [(&str, &str); 7] = [
    ("awsElasticBlockStore", "ebs.csi.aws.com"),
    ("azureDisk", "disk.csi.azure.com"),
    ("azureFile", "file.csi.azure.com"),
    ("cinder", "cinder.csi.openstack.org"),
    ("gcePersistentDisk", "pd.csi.storage.gke.io"),
    ("portworxVolume", "pxd.portworx.com"),
    ("vsphereVolume", "csi.vsphere.vmware.com"),
];

impl Write<'_> {
    pub(super) fn judge_token(&self) -> Result<(), Refusal> {
        let is_token = self.attributes.part == Some("token");
        if !is_token || self.attributes.operation != Operation::Create {
            return Ok(());
        }
        let bound = &self.object["spec"]["boundObjectRef"];
        let (name, uid) = (text(&bound["name"]), text(&bound["uid"]));
        if bound["apiVersion"] != "v1" || bound["kind"] != "Pod" || name.is_empty() {
            return self.forbid("node requested token not bound to a pod");
        }
        if uid.is_empty() {
            return self.forbid("node requested token with a pod binding without a uid");
        }
        let pod = self.pod(name)?;
        if uid != meta::text(&pod, "uid") {
            return self.forbid(format!(
                "the UID in the bound object reference ({uid}) does not match the UID in record. \
                 The object might have been deleted and then recreated"
            ));
        }
        if pod["spec"]["nodeName"] != self.node {
            let why = "node requested token bound to a pod scheduled on a different node";
            return self.forbid(why);
        }
        self.judge_audience(&pod)
    }

    fn judge_audience(&self, pod: &Value) -> Result<(), Refusal> {
        let audience = match items(&self.object["spec"]["audiences"]) {
            [] => "",
            [one] => text(one),
            _ => return self.forbid("node may only request 0 or 1 audiences"),
        };
        match self.wants_audience(pod, audience) {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(why) => {
                let audience = go_quote(audience);
                return self.forbid(format!("error validating audience {audience}: {why}"));
            }
        }
        let wanted = authz::Resource {
            resource: audience,
            namespace: self.namespace(),
            name: self.attributes.name,
            ..authz::Resource::default()
        };
        let user = self.attributes.user;
        let asked = authz::Attributes::resource(VERB, wanted);
        if matches!(self.scene.authorizer.decide(user, &asked), Decision::Allowed(_)) {
            return Ok(());
        }
        self.forbid(format!(
            "audience {} not found in pod spec volume, {} is not authorized to request tokens for \
             this audience",
            go_quote(audience),
            user.name
        ))
    }

    /// Whether a volume of the pod wants tokens for this audience, or the driver of one. What cannot
    /// be found out matters only if no other does.
    fn wants_audience(&self, pod: &Value, audience: &str) -> Result<bool, String> {
        let mut problems: Vec<String> = Vec::new();
        for volume in items(&pod["spec"]["volumes"]) {
            let mut tokens = items(&volume["projected"]["sources"]).iter().filter_map(|source| {
                source.get("serviceAccountToken").filter(|token| token.is_object())
            });
            if tokens.any(|token| text(&token["audience"]) == audience) {
                return Ok(true);
            }
            let wants = self.driver(pod, volume).and_then(|driver| match driver.as_str() {
                "" => Ok(false),
                driver => self.driver_wants(driver, audience),
            });
            match wants {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(missing) if problems.contains(&missing.message) => {}
                Err(missing) => problems.push(missing.message),
            }
        }
        match problems.is_empty() {
            true => Ok(false),
            false => Err(aggregate(problems.iter())),
        }
    }

    /// The CSI driver of a volume, empty when it has none.
    fn driver(&self, pod: &Value, volume: &Value) -> Result<String, Refusal> {
        let Some(claim) = references::claim(pod, volume) else { return Ok(driver(volume)) };
        let key = format!("/registry/persistentvolumeclaims/{}/{claim}", self.namespace());
        let found = self.scene.get(&key);
        let found = found.ok_or_else(|| missing("", "persistentvolumeclaim", &claim))?;
        let name = text(&found["spec"]["volumeName"]);
        let volume = self.scene.get(&format!("/registry/persistentvolumes/{name}"));
        let volume = volume.ok_or_else(|| missing("", "persistentvolume", name))?;
        Ok(driver(&volume["spec"]))
    }

    fn driver_wants(&self, driver: &str, audience: &str) -> Result<bool, Refusal> {
        let found = self.scene.get(&format!("/registry/csidrivers/{driver}"));
        let found = found.ok_or_else(|| missing("storage.k8s.io", "csidriver", driver))?;
        let mut requests = items(&found["spec"]["tokenRequests"]).iter();
        Ok(requests.any(|request| text(&request["audience"]) == audience))
    }
}

/// The CSI driver that a source of a volume names, or that took its place.
fn driver(source: &Value) -> String {
    if source["csi"].is_object() {
        return text(&source["csi"]["driver"]).to_owned();
    }
    let migrated = MIGRATED.iter().find(|(kind, _)| source[*kind].is_object());
    migrated.map(|(_, driver)| (*driver).to_owned()).unwrap_or_default()
}
