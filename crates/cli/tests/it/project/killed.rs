//! Commands that are killed in the middle, and commands that meet.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{BOOK, Workshop};

/// Enough for each to die in all its parts now and then.
const ROUNDS: u32 = 12;

type Tree = BTreeMap<PathBuf, String>;

/// When somebody is killed.
#[derive(Clone, Copy)]
enum Moment {
    /// So long after it began.
    After(Duration),
    /// So long after it has written down what it is about to do.
    Begun(Duration),
}

/// Runs a command until it is killed. One that is done before is left alone.
fn kill(shop: &Workshop, args: &[&str], moment: Moment) {
    let mut command = shop.command(env!("CARGO_BIN_EXE_kubewright"), args);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
    let wait = match moment {
        Moment::After(wait) => wait,
        Moment::Begun(wait) => {
            let journal = shop.root().join(".kubewright-journal");
            while !journal.exists() && !has_ended(&mut child) {
                std::hint::spin_loop();
            }
            wait
        }
    };
    let until = Instant::now() + wait;
    while Instant::now() < until && !has_ended(&mut child) {
        std::hint::spin_loop();
    }
    // It may have ended.
    let _ = child.kill();
    child.wait().expect("it ends");
}

fn has_ended(child: &mut Child) -> bool {
    child.try_wait().expect("it is asked").is_some()
}

/// Moments all over the life of a command that takes so long: half of them while it writes.
fn moments(whole: Duration) -> impl Iterator<Item = Moment> {
    (0..ROUNDS).map(move |round| match round % 2 {
        0 => Moment::After(whole * round / ROUNDS),
        _ => Moment::Begun(Duration::from_micros(u64::from(round * round) * 150)),
    })
}

/// How long a command takes that is not killed.
fn timed(work: impl FnOnce()) -> Duration {
    let began = Instant::now();
    work();
    began.elapsed()
}

/// Neither files that were begun nor words about them are left.
#[test]
fn a_project_that_is_killed_while_it_is_made_is_made_by_the_next_command() {
    let shop = Workshop::new("begun");
    let init = ["init", "begun", "--domain", "my.domain"];
    let whole = timed(|| drop(shop.run(&init)));
    let made = shop.tree();
    for moment in moments(whole) {
        fs::remove_dir_all(shop.root()).expect("removed");
        // Where there is no project yet, commands begin above it.
        kill(&shop, &init, moment);
        let from_above = ["init", ".", "--domain", "my.domain"];
        let is_there = shop.root().exists();
        shop.run(if is_there { &from_above } else { &init });
        assert_eq!(shop.tree(), made);
    }
}

#[test]
fn a_command_that_is_killed_leaves_the_old_tree_or_the_new_one() {
    let shop = Workshop::new("killed");
    shop.init();
    let both = ["--resource", "--controller"];
    let create = [&["create", "api"], &BOOK[..], &both].concat();
    let delete = [&["delete", "api"], &BOOK[..], &both].concat();
    // What changes nothing finishes what was begun.
    let look = ["delete", "api", "--group", "none", "--version", "v1", "--kind", "None1"];
    let without = shop.tree();
    let whole = timed(|| drop(shop.run(&create)));
    let with = shop.tree();
    assert_ne!(with, without);
    let (mut is_there, mut n_done) = (true, 0);
    for moment in moments(whole).chain(moments(whole)) {
        kill(&shop, if is_there { &delete } else { &create }, moment);
        shop.run(&look);
        let left = shop.tree();
        let (old, new) = if is_there { (&with, &without) } else { (&without, &with) };
        if left == *new {
            is_there = !is_there;
            n_done += 1;
        } else {
            check_same(&left, old);
        }
    }
    eprintln!("{n_done} of {} were done all the same", 2 * ROUNDS);
}

fn check_same(left: &Tree, right: &Tree) {
    assert_eq!(left.keys().collect::<Vec<_>>(), right.keys().collect::<Vec<_>>());
    assert_eq!(left, right);
}

/// Each plans with what the one before it has left.
#[test]
fn commands_that_meet_wait_for_each_other() {
    let shop = Workshop::new("met");
    shop.init();
    let kinds = ["Author", "Book", "Page", "Shelf"];
    let create = |kind: &str| -> Command {
        let args = ["create", "api", "--version", "v1", "--kind", kind, "--resource"];
        shop.command(env!("CARGO_BIN_EXE_kubewright"), &args)
    };
    let before = shop.tree();
    // Somebody else is at it.
    let turn = File::open(shop.root()).expect("a folder");
    turn.lock().expect("nobody has it");
    let mut first = create(kinds[0]);
    let mut first = first.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it runs");
    let mut told = BufReader::new(first.stderr.take().expect("it is piped")).lines();
    let told = told.next().expect("a line").expect("text");
    assert!(told.starts_with("waiting for another command that changes "), "{told}");
    assert_eq!(shop.tree(), before);
    drop(turn);
    assert!(first.wait().expect("it ends").success());

    let others = kinds[1..].iter().map(|kind| {
        let mut other = create(kind);
        other.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs")
    });
    for mut other in others.collect::<Vec<_>>() {
        assert!(other.wait().expect("it ends").success());
    }
    let library = fs::read_to_string(shop.root().join("src/lib.rs")).expect("a text");
    for kind in kinds {
        let module = kind.to_lowercase();
        assert!(library.contains(&format!(".kind::<{module}::v1::{kind}>()")), "{library}");
    }
}
