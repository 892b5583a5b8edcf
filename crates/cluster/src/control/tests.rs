//! A line each way.

use super::*;

/// Tells `command` to a socket that answers each with `answer`.
async fn exchange(dir: &Path, command: Command, answer: Answer) -> (Command, Result<()>) {
    let socket = Socket::bind(dir).expect("bound");
    let path = socket.path().to_owned();
    let (sender, mut orders) = mpsc::channel::<Order>(1);
    let told = tokio::task::spawn_blocking(move || tell(&path, &command));
    let obey = async {
        let (command, reply) = orders.recv().await.expect("a command");
        reply.send(answer).expect("somebody waits");
        drop(orders);
        command
    };
    let ((), command) = tokio::join!(socket.run(sender), obey);
    (command, told.await.expect("it ended"))
}

#[tokio::test]
async fn commands_arrive_and_answers_come_back() {
    let dir = tempfile::tempdir().expect("a directory");
    let snapshot = Command::Snapshot { path: "/a b".into() };
    let (heard, told) = exchange(dir.path(), snapshot.clone(), Answer::Done).await;
    assert_eq!(heard, snapshot);
    told.expect("done");
    let failed = Answer::Failed("no room".to_owned());
    let (_, told) = exchange(dir.path(), Command::Reset, failed).await;
    assert_eq!(told.expect_err("failed").to_string(), "no room");
    assert!(!dir.path().join("control").exists(), "it went with its owner");
}

#[tokio::test]
async fn a_long_path_is_no_obstacle() {
    let dir = tempfile::tempdir().expect("a directory");
    let long = dir.path().join("x".repeat(120));
    std::fs::create_dir(&long).expect("made");
    let (heard, told) = exchange(&long, Command::Stop, Answer::Done).await;
    assert_eq!(heard, Command::Stop);
    told.expect("done");
}

#[test]
fn a_cluster_that_is_not_there_cannot_be_told() {
    let error = tell(Path::new("no/such/socket"), &Command::Stop).expect_err("nobody");
    assert_eq!(error.to_string(), "reach the cluster at no/such/socket");
}
