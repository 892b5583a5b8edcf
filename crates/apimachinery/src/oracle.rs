//! Random input, judged by upstream's own libraries.
//!
//! Recorded answers pin the behaviours somebody thought of; these tests look for the others. The
//! judge is a small Go program (`cargo xtask oracle` builds it and runs these tests with it); where
//! `KUBEWRIGHT_ORACLE` does not name it, each test says so and passes.

mod apply;
mod builtins;
mod patches;
mod paths;
mod rules;
mod schema;
mod values;

use std::fmt::Debug;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use serde_json::{Value, json};

/// What upstream says: a value, or the text of its error.
type Verdict = Result<Value, String>;

/// Asserts that for random input our verdict is upstream's, errors by their texts.
fn agree<I: Debug>(
    operation: &str,
    input: impl Strategy<Value = I>,
    args: impl Fn(&I) -> Value,
    ours: impl Fn(&I) -> Verdict,
) {
    compare(operation, input, args, ours, |ours, upstream| ours == upstream);
}

/// As [`agree`], for operations whose error texts no client sees.
fn agree_on_success<I: Debug>(
    operation: &str,
    input: impl Strategy<Value = I>,
    args: impl Fn(&I) -> Value,
    ours: impl Fn(&I) -> Verdict,
) {
    compare(operation, input, args, ours, |ours, upstream| match (ours, upstream) {
        (Ok(ours), Ok(upstream)) => ours == upstream,
        (Err(_), Err(_)) => true,
        _ => false,
    });
}

fn compare<I: Debug>(
    operation: &str,
    input: impl Strategy<Value = I>,
    args: impl Fn(&I) -> Value,
    ours: impl Fn(&I) -> Verdict,
    same: impl Fn(&Verdict, &Verdict) -> bool,
) {
    let Some(oracle) = Oracle::start() else {
        println!("skipped: KUBEWRIGHT_ORACLE names no program; try `cargo xtask oracle`");
        return;
    };
    let oracle = Mutex::new(oracle);
    let cases = std::env::var("KUBEWRIGHT_ORACLE_CASES").ok().and_then(|n| n.parse().ok());
    let config =
        Config { cases: cases.unwrap_or(2_000), failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&input, |input| {
        let upstream = oracle.lock().expect("one thread asks").ask(operation, args(&input));
        let ours = ours(&input);
        match same(&ours, &upstream) {
            true => Ok(()),
            false => {
                let [ours, upstream] = [ours, upstream].map(|verdict| match verdict {
                    Ok(value) => value.to_string(),
                    Err(text) => format!("error: {text}"),
                });
                Err(TestCaseError::fail(format!("\nours     {ours}\nupstream {upstream}")))
            }
        }
    });
    if let Err(disagreement) = outcome {
        panic!("{operation}: {disagreement}");
    }
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Answer {
    Ok(Value),
    Err(String),
    /// Upstream has bugs too; its server answers such a request with an error.
    Panic(String),
    /// The question was not understood.
    Bug(String),
}

struct Oracle {
    child: Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Oracle {
    fn start() -> Option<Self> {
        let program = std::env::var_os("KUBEWRIGHT_ORACLE")?;
        let mut child = Command::new(&program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("start {}: {error}", program.display()));
        let questions = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().expect("it is piped"));
        Some(Oracle { child, questions, answers })
    }

    fn ask(&mut self, operation: &str, args: Value) -> Verdict {
        let question = json!({ "op": operation, "args": args });
        let questions = self.questions.as_mut().expect("open until dropped");
        writeln!(questions, "{question}").expect("the oracle listens");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("the oracle answers");
        match serde_json::from_str(&line).expect("an answer is one of these") {
            Answer::Ok(value) => Ok(value),
            Answer::Err(text) | Answer::Panic(text) => Err(text),
            Answer::Bug(text) => panic!("{question}: {text}"),
        }
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        // At the end of its input it exits.
        self.questions = None;
        self.child.wait().expect("the oracle ends");
    }
}

/// JSON trees out of few names and values, so that objects and patches meet.
fn tree() -> impl Strategy<Value = Value> {
    use proptest::prelude::*;

    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2i64..3).prop_map(Value::from),
        Just(json!(1.5)),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-d]", inner, 0..4)
                .prop_map(|map| map.into_iter().collect::<Value>()),
        ]
    })
}

/// Trees that are objects.
fn object() -> impl Strategy<Value = Value> {
    use proptest::prelude::*;

    prop::collection::btree_map("[a-d]", tree(), 0..4)
        .prop_map(|map| map.into_iter().collect::<Value>())
}
