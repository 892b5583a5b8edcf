use super::*;

#[test]
fn a_runtime_may_be_silent_for_a_while() {
    let silent = Err(Unwell::Silent);
    assert_eq!(trouble(&silent, Duration::from_secs(29)), None);
    let down = Some("container runtime is down".to_owned());
    assert_eq!(trouble(&silent, Duration::from_secs(30)), down);
    assert_eq!(trouble(&Ok(()), Duration::ZERO), None);
}

#[test]
fn what_a_runtime_says_of_itself_is_told_at_once() {
    let why = "network not ready: NetworkReady=false reason:NetworkPluginNotReady message:no";
    let unready = Err(Unwell::NotReady(why.to_owned()));
    let told = Some(format!("container runtime {why}"));
    assert_eq!(trouble(&unready, Duration::ZERO), told);
}
