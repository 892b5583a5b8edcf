//! Applies a unified diff, strictly: every line must be where the diff has it.

use std::collections::BTreeMap;

/// Files after a patch.
pub(crate) fn patched(
    mut files: BTreeMap<String, String>,
    patch: &str,
) -> BTreeMap<String, String> {
    let mut lines = patch.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(old) = line.strip_prefix("--- ") else { continue };
        let name = |text: &str| text.split_once('/').map(|(_, name)| name.to_owned());
        let new = lines.next().and_then(|line| line.strip_prefix("+++ ")).expect("two names");
        let path = name(if new == "/dev/null" { old } else { new }).expect("a name");
        let before = files.remove(&path).unwrap_or_default();
        let before: Vec<&str> = before.lines().collect();
        let (mut after, mut at) = (Vec::new(), 0);
        while let Some(hunk) = lines.next_if(|line| line.starts_with("@@ -")) {
            let start = hunk[4..].split([',', ' ']).next().and_then(|it| it.parse::<usize>().ok());
            let start = start.expect("a line number").max(1) - 1;
            after.extend_from_slice(&before[at..start]);
            at = start;
            while let Some(line) =
                lines.next_if(|line| !line.starts_with(['@', '-']) || is_gone(line))
            {
                match line.split_at_checked(1) {
                    Some((" ", text)) => {
                        assert_eq!(before[at], text, "{path}:{}", at + 1);
                        after.push(text);
                        at += 1;
                    }
                    Some(("-", text)) => {
                        assert_eq!(before[at], text, "{path}:{}", at + 1);
                        at += 1;
                    }
                    Some(("+", text)) => after.push(text),
                    _ => panic!("{line:?} is no line of a patch"),
                }
            }
        }
        after.extend_from_slice(&before[at..]);
        if new != "/dev/null" {
            files.insert(path, after.iter().map(|line| format!("{line}\n")).collect());
        }
    }
    files
}

fn is_gone(line: &str) -> bool {
    line.starts_with('-') && !line.starts_with("--- ")
}

#[test]
fn a_patch_is_applied_as_it_is_written() {
    let files = BTreeMap::from([("a".to_owned(), "1\n2\n3\n".to_owned())]);
    let patch = "--- a/a\n+++ b/a\n@@ -2,2 +2,2 @@\n-2\n+two\n 3\n--- /dev/null\n+++ b/b\n@@ -0,0 +1 @@\n+new\n";
    let expected = [("a", "1\ntwo\n3\n"), ("b", "new\n")];
    let expected = expected.map(|(path, text)| (path.to_owned(), text.to_owned()));
    assert_eq!(patched(files, patch), BTreeMap::from(expected));
}
