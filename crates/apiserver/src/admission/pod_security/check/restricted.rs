//! What the restricted level asks besides: that a pod gives up what it can do without.

use serde_json::Value;

use super::{Pod, Values, Violation, baseline, containers, counted, quoted};
use crate::admission::{items, text};

/// Volumes that hold nothing of the node's.
const VOLUMES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

pub(super) fn privilege_escalation(pod: &Pod<'_>) -> Option<Violation> {
    if pod.is_excused_on_windows() {
        return None;
    }
    let wrong =
        pod.wrong(|container| container["securityContext"]["allowPrivilegeEscalation"] != false);
    (!wrong.is_empty()).then(|| Violation {
        reason: "allowPrivilegeEscalation != false",
        detail: format!(
            "{} must set securityContext.allowPrivilegeEscalation=false",
            containers(&wrong)
        ),
    })
}

pub(super) fn capabilities(pod: &Pod<'_>) -> Option<Violation> {
    if pod.is_excused_on_windows() {
        return None;
    }
    let list = |container: &Value, list: &str| -> Values {
        let list = items(&container["securityContext"]["capabilities"][list]);
        list.iter().map(|one| text(one).to_owned()).collect()
    };
    let keeping = pod.wrong(|container| !list(container, "drop").contains("ALL"));
    let mut added = Values::new();
    let adding = pod.wrong(|container| {
        let mut adds = list(container, "add");
        adds.remove("NET_BIND_SERVICE");
        let adds_any = !adds.is_empty();
        added.append(&mut adds);
        adds_any
    });
    let keeping = (!keeping.is_empty()).then(|| {
        format!("{} must set securityContext.capabilities.drop=[\"ALL\"]", containers(&keeping))
    });
    let adding = (!adding.is_empty()).then(|| {
        format!(
            "{} must not include {} in securityContext.capabilities.add",
            containers(&adding),
            quoted(&added)
        )
    });
    let details: Vec<String> = [keeping, adding].into_iter().flatten().collect();
    (!details.is_empty())
        .then(|| Violation { reason: "unrestricted capabilities", detail: details.join("; ") })
}

pub(super) fn proc_mount(pod: &Pod<'_>) -> Option<Violation> {
    let mut types = Values::new();
    let wrong = pod.wrong(|container| {
        let ty = container["securityContext"]["procMount"].as_str();
        let other = ty.filter(|ty| *ty != "Default");
        types.extend(other.map(str::to_owned));
        other.is_some()
    });
    (!wrong.is_empty()).then(|| Violation {
        reason: "procMount",
        detail: format!(
            "{} must not set securityContext.procMount to {}",
            containers(&wrong),
            quoted(&types)
        ),
    })
}

pub(super) fn volumes(pod: &Pod<'_>) -> Option<Violation> {
    let mut types = Values::new();
    let mut wrong = Vec::new();
    for volume in items(&pod.spec["volumes"]) {
        // A volume is its name and its source.
        let fields = volume.as_object().into_iter().flat_map(|fields| fields.keys());
        let source = fields.map(String::as_str).find(|field| *field != "name").unwrap_or("unknown");
        if !VOLUMES.contains(&source) {
            types.insert(source.to_owned());
            wrong.push(text(&volume["name"]));
        }
    }
    (!wrong.is_empty()).then(|| Violation {
        reason: "restricted volume types",
        detail: format!(
            "{} {} {} {} {}",
            counted(wrong.len(), "volume", "volumes"),
            quoted(&wrong),
            counted(wrong.len(), "uses", "use"),
            counted(types.len(), "restricted volume type", "restricted volume types"),
            quoted(&types)
        ),
    })
}

pub(super) fn run_as_non_root(pod: &Pod<'_>) -> Option<Violation> {
    const REASON: &str = "runAsNonRoot != true";
    if pod.is_excused_by_user_namespace() {
        return None;
    }
    let setters = pod.setters(|context| context["runAsNonRoot"] == false);
    if !setters.is_empty() {
        let detail = format!("{setters} must not set securityContext.runAsNonRoot=false");
        return Some(Violation { reason: REASON, detail });
    }
    let silent = silent(pod, "runAsNonRoot")?;
    let detail = format!("pod or {silent} must set securityContext.runAsNonRoot=true");
    Some(Violation { reason: REASON, detail })
}

pub(super) fn run_as_user(pod: &Pod<'_>) -> Option<Violation> {
    if pod.is_excused_by_user_namespace() {
        return None;
    }
    let setters = pod.setters(|context| context["runAsUser"] == 0);
    (!setters.is_empty()).then(|| Violation {
        reason: "runAsUser=0",
        detail: format!("{setters} must not set runAsUser=0"),
    })
}

/// There must be a profile.
pub(super) fn seccomp(pod: &Pod<'_>) -> Option<Violation> {
    if pod.is_excused_on_windows() {
        return None;
    }
    if let Some(violation) = baseline::seccomp(pod) {
        return Some(violation);
    }
    let silent = silent(pod, "seccompProfile")?;
    Some(Violation {
        reason: "seccompProfile",
        detail: format!(
            "pod or {silent} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \
             \"Localhost\""
        ),
    })
}

/// The containers that do not say something that the pod does not say for them either.
fn silent(pod: &Pod<'_>, field: &str) -> Option<String> {
    if !pod.spec["securityContext"][field].is_null() {
        return None;
    }
    let silent = pod.wrong(|container| container["securityContext"][field].is_null());
    (!silent.is_empty()).then(|| containers(&silent))
}
