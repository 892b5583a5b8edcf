//! The program on a cluster, ours in virtual time, or one that is there already. No pod runs: the
//! tests stand in for nodes, and there are no logs.

use anyhow::Result;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Service};
use k8s_openapi::api::networking::v1::Ingress;
use kube::api::{Api, DeleteParams};
use kubewright_testing::{Cluster, on_cluster};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use workloads::{Show, objects, run};

/// The program at work.
struct Program {
    namespace: String,
    lines: mpsc::Receiver<String>,
    interrupt: CancellationToken,
    task: JoinSet<Result<()>>,
}

impl Program {
    fn start(cluster: &Cluster) -> Self {
        let namespace = match cluster.is_virtual() {
            true => "foo".to_owned(),
            false => format!("{}-foo", cluster.namespace()),
        };
        let (tell, lines) = mpsc::channel(256);
        let show = Show::new(move |line| {
            let _ = tell.try_send(line.to_owned());
        });
        let interrupt = CancellationToken::new();
        let mut task = JoinSet::new();
        let (client, home, interrupted) =
            (cluster.client(), namespace.clone(), interrupt.clone().cancelled_owned());
        task.spawn(async move {
            let interrupted = async {
                interrupted.await;
                Ok(())
            };
            run(&client, &home, show, interrupted).await
        });
        Program { namespace, lines, interrupt, task }
    }

    async fn line(&mut self) -> String {
        self.lines.recv().await.expect("a line")
    }

    /// What it prints, up to a line.
    async fn until(&mut self, last: &str) -> Vec<String> {
        let mut lines = Vec::new();
        while lines.last().is_none_or(|line| line != last) {
            lines.push(self.line().await);
        }
        lines
    }

    /// Presses Ctrl-C, and waits for its end.
    async fn interrupt(self) -> Result<()> {
        self.interrupt.cancel();
        self.ended().await
    }

    /// Waits for its end.
    async fn ended(mut self) -> Result<()> {
        self.task.join_next().await.expect("it runs").expect("it does not panic")
    }
}

#[test]
fn a_service_runs_until_it_is_interrupted_and_leaves_nothing_behind() {
    on_cluster(async |cluster| {
        let mut program = Program::start(cluster);
        let namespace = program.namespace.clone();
        assert_eq!(program.line().await, format!("Creating namespace {namespace:?}."));
        assert_eq!(program.line().await, "Waiting for ready replicas in: \"hello-world\"");
        assert_eq!(program.line().await, "replicas are not ready yet. 0/2");
        let pods = cluster.run_pods_in(&namespace);
        program.until("replicas are ready!").await;
        let told = "You can now see your running service: http://localhost:8080/hello";
        assert_eq!(program.line().await, told);

        // The book shows one more line: how far it is when one of two is ready.
        let page = include_str!("../../../../docs/book/operators/workloads.md");
        let lines = [
            "Creating namespace \"foo\".\nWaiting for ready replicas in: \"hello-world\"\n",
            "replicas are not ready yet. 0/2\n",
            &format!("replicas are ready!\n{told}\n"),
        ];
        assert!(lines.iter().all(|lines| page.contains(lines)), "{lines:?}");

        let client = cluster.client();
        let services: Api<Service> = Api::namespaced(client.clone(), &namespace);
        let service = services.get("hello-world").await.expect("a Service");
        let ports = service.spec.expect("a spec").ports.expect("ports");
        assert_eq!((ports[0].name.as_deref(), ports[0].port), (Some("http"), 80));
        let ingresses: Api<Ingress> = Api::namespaced(client, &namespace);
        let ingress = json!(ingresses.get("hello-world").await.expect("an Ingress").spec);
        let path = &ingress["rules"][0]["http"]["paths"][0];
        assert_eq!((&path["path"], &path["pathType"]), (&json!("/hello"), &json!("Prefix")));
        assert_eq!(path["backend"]["service"]["port"], json!({"name": "http"}));
        assert_eq!(ingress["ingressClassName"], json!(null));

        pods.stop().await;
        program.interrupt().await.expect("it ends well");
        let is_gone = |it: Option<&Namespace>| it.is_none();
        cluster.eventually(None, &namespace, is_gone).await;
    });
}

#[test]
fn interrupted_while_it_waits_it_leaves_nothing_behind_either() {
    on_cluster(async |cluster| {
        let mut program = Program::start(cluster);
        program.until("replicas are not ready yet. 0/2").await;
        let namespace = program.namespace.clone();
        program.interrupt().await.expect("it ends well");
        cluster.eventually::<Namespace>(None, &namespace, |it| it.is_none()).await;
    });
}

/// Whatever goes wrong, it goes as it came.
#[test]
fn what_cannot_be_made_or_is_taken_away_ends_it_and_leaves_nothing_behind() {
    on_cluster(async |cluster| {
        let check = async |program: Program, told: &str| {
            let namespace = program.namespace.clone();
            let error = format!("{:#}", program.ended().await.expect_err("it cannot go on"));
            assert!(error.starts_with(told), "{error}");
            cluster.eventually::<Namespace>(None, &namespace, |it| it.is_none()).await;
        };
        cluster.faults().answer(500, 1, |request| {
            request.method == "POST" && request.uri.path().ends_with("/deployments")
        });
        check(Program::start(cluster), "create the Deployment").await;

        let mut program = Program::start(cluster);
        program.until("replicas are not ready yet. 0/2").await;
        let deployments: Api<Deployment> = Api::namespaced(cluster.client(), &program.namespace);
        deployments.delete(objects::NAME, &DeleteParams::default()).await.expect("deleted");
        check(program, "the Deployment was deleted").await;
    });
}

/// It does not run in a namespace that somebody else has, nor take that away.
#[test]
fn a_namespace_that_is_there_is_left_alone() {
    on_cluster(async |cluster| {
        let namespace = format!("{}-mine", cluster.namespace());
        let object = serde_json::to_value(objects::namespace(&namespace)).expect("an object");
        let mut object = object;
        object["apiVersion"] = json!("v1");
        object["kind"] = json!("Namespace");
        cluster.apply(&object).await;
        let never = std::future::pending();
        let ran = run(&cluster.client(), &namespace, Show::new(|_| {}), never).await;
        let error = format!("{:#}", ran.expect_err("it is refused"));
        assert!(error.starts_with(&format!("create namespace {namespace}")), "{error}");
        let namespaces: Api<Namespace> = Api::all(cluster.client());
        namespaces.get(&namespace).await.expect("it is there");
        let _ = namespaces.delete(&namespace, &DeleteParams::default()).await;
    });
}
