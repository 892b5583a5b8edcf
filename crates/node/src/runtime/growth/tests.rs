use super::*;

/// Whoever followed the log of a pod that was deleted by force waited without end.
#[tokio::test]
async fn a_log_that_is_taken_away_ends() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path().join("run");
    std::fs::create_dir(&place).expect("it is made");
    std::fs::write(place.join("log"), "one\n").expect("it is written");
    let mut log = follow(place.join("log"), place.join("exit"), true);
    let first = log.next().await.expect("a line").expect("it is read");
    assert_eq!(first, b"one\n");
    // Somebody waits for more by the time that it goes, or does not yet: both must end.
    let (rest, ()) = tokio::join!(log.next(), async {
        tokio::task::yield_now().await;
        std::fs::remove_dir_all(&place).expect("it is removed");
    });
    assert!(rest.is_none(), "{rest:?}");
    let mut late = follow(place.join("log"), place.join("exit"), false);
    assert!(late.next().await.is_none(), "nothing is there");
}

#[tokio::test]
async fn a_log_is_followed_to_the_end_of_its_container() {
    let directory = tempfile::tempdir().expect("a directory");
    let (log, end) = (directory.path().join("log"), directory.path().join("exit"));
    let mut following = follow(log.clone(), end.clone(), true);
    let (told, ()) = tokio::join!(following.next(), async {
        tokio::task::yield_now().await;
        std::fs::write(&log, "one\n").expect("it is written");
    });
    assert_eq!(told.expect("a line").expect("it is read"), b"one\n");
    std::fs::write(&end, "").expect("it is written");
    assert!(following.next().await.is_none(), "a log ends with its container");
}
