use jiff::SignedDuration;

use super::*;

#[test]
fn stages_are_read_from_a_list() {
    let text = "\
# What containers do.
- owner: DaemonSet
  readyAfter: 3s
- container: broken
  runsFor: 2s
  exitCode: 7
";
    let stages = parse_stages(text).expect("they are read");
    let expected = [
        Stage {
            owner: Some("DaemonSet".to_owned()),
            ready_after: SignedDuration::from_secs(3),
            ..Stage::default()
        },
        Stage {
            container: Some("broken".to_owned()),
            runs_for: Some(SignedDuration::from_secs(2)),
            exit_code: 7,
            ..Stage::default()
        },
    ];
    assert_eq!(stages, expected);
    assert!(parse_stages("[]").expect("they are read").is_empty());
}

#[test]
fn what_is_no_stage_is_told_with_its_line() {
    let check = |text: &str, expected: &str| {
        let told = parse_stages(text).expect_err("it is wrong").to_string();
        assert!(told.starts_with(expected), "{told}");
    };
    check("owner: Job", "this is no list of stages");
    check("- owner: Job\n- runFor: 2s\n", "line 2: stage 2: unknown field `runFor`, expected");
    check("\n- owner: Job\n  runsFor: soon\n", "line 2: stage 1: ");
    check("[{owner: Job}, {exitCode: x}]", "stage 2: invalid type: string \"x\"");
    check("- owner: Job\n  runsFor: [\n", "yaml: ");
}
