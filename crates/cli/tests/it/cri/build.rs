//! Images that `kubewright build` makes, in real containers.

use super::{Site, image};

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
