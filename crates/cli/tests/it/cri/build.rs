//! Images that `kubewright build` makes, in real containers.

use super::{Site, image};
use crate::project::{BOOK, Workshop, builds, succeed};

#[test]
fn what_is_built_is_run_without_a_registry() {
    let Some(site) = Site::new() else { return };
    let tag = "registry.example.com/team/tool:1";
    let binary = image::busybox();
    let words = ["build", "--binary", binary, "--tag", tag, "--load"];
    let told = site.user.run(&words).expect("it is built");
    assert!(told.contains(&format!("loaded {tag}\n")), "{told}");
    // The program of the image is called without its name being said; nothing but it is there.
    site.apply(&format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{name: built}}
spec:
  restartPolicy: Never
  securityContext: {{runAsNonRoot: true}}
  containers:
  - {{name: tool, image: "{tag}", imagePullPolicy: Never, args: [sh, -c, "id -u; ls /home"]}}
"#
    ));
    site.until_phase("built", "Succeeded");
    assert_eq!(site.kubectl(&["logs", "built"]), "65532\nnonroot\n");
}

/// Builds it for release, which takes minutes: only if `KUBEWRIGHT_PROJECTS` is set.
#[test]
fn a_project_runs_in_the_image_that_is_built_of_it() {
    if !builds("a_project_runs_in_the_image_that_is_built_of_it") {
        return;
    }
    let Some(site) = Site::new() else { return };
    let shop = Workshop::at_its_place("stall");
    shop.init();
    shop.run(&[&["create", "api"], &BOOK[..], &["--resource", "--controller"]].concat());
    let admission = ["--defaulting", "--validation"];
    shop.run(&[&["create", "webhook"], &BOOK[..], &admission].concat());
    let home = site.user.home.path();
    let run = |args: &[&str]| {
        let mut command = shop.command(env!("CARGO_BIN_EXE_kubewright"), args);
        command.env("XDG_DATA_HOME", home.join(".local/share"));
        command.env("KUBECONFIG", home.join(".kube/config"));
        // That it is fast is not the claim.
        succeed(command.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0"))
    };
    let tag = "registry.example.com/team/stall:1";
    let told = run(&["build", "--tag", tag, "--load"]);
    assert!(told.contains(&format!("loaded {tag}\n")), "{told}");
    run(&["deploy", "--image", tag]);
    let manager = ["deployment", "stall-controller-manager", "--namespace", "stall-system"];
    site.until(&manager, |it| it["status"]["availableReplicas"] == 1);

    // Webhooks and the controller answer, in the container.
    let book = |name: &str| {
        format!(
            "{{apiVersion: library.my.domain/v1, kind: Book, metadata: {{name: {name}}}, spec: {{}}}}"
        )
    };
    site.apply(&book("one"));
    let one = site.until(&["book", "one"], |it| {
        let conditions = it["status"]["conditions"].as_array();
        conditions.is_some_and(|all| all.iter().any(|it| it["reason"] == "Reconciled"))
    });
    let label = &one["metadata"]["labels"]["app.kubernetes.io/name"];
    assert_eq!(label, "book", "no webhook has added it: {one:#}");
    let long = site.fed(&["create", "-f", "-"], &format!("---\n{}", book(&"a".repeat(64))));
    let refusal = super::text(&long.stderr);
    assert!(refusal.contains("must have no more than 63 characters"), "{refusal}");
    run(&["undeploy"]);
    site.until(&["namespaces"], |list| {
        let all = list["items"].as_array();
        all.is_some_and(|all| all.iter().all(|it| it["metadata"]["name"] != "stall-system"))
    });
}
