//! A `run` inside a `run` of the same name: it joins the outer hold, and shares its fate.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use rustix::process::{Pid, Signal};

use super::support::{Den, alive, output, read, start, text, until};

/// `lockkeeper run …` of an outer command, with the program as `$LK` for the inner one.
fn outer(den: &Den, args: &[&str], script: &str) -> Command {
    let mut command = den.run(args);
    command.args(["--", "sh", "-c", script]).env("LK", env!("CARGO_BIN_EXE_lockkeeper"));
    command
}

/// Runs until it is killed, after leaving its process group's number in `in`.
const STAY: &str = "echo $$ > in.new; mv in.new in; read line < /dev/null; exec sleep 1000";

fn group(den: &Den) -> Pid {
    until("the inner command runs", || den.path("in").exists());
    read(&den.path("in")).trim().parse().ok().and_then(Pid::from_raw).expect("a group")
}

/// The folders of sockets that are there.
fn sockets(den: &Den) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(den.path("")).expect("a folder").flatten();
    let folders = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("lockkeeper-"));
    folders.map(|entry| entry.path()).collect()
}

#[test]
fn an_inner_run_of_the_same_name_joins() {
    let den = Den::new();
    let inner = "\"$LK\" run x --no-wait -- sh -c 'echo $LOCKKEEPER_NAME $LOCKKEEPER_TOKEN; exit 7'; echo $?";
    let script = format!("echo $LOCKKEEPER_TOKEN; {inner}; \"$LK\" run x -- \"$LK\" run x -- echo deep");
    let done = output(&mut outer(&den, &["x", "--no-wait"], &script));
    let said = text(&done.stdout);
    let lines: Vec<&str> = said.lines().collect();
    let wanted = [lines[0].to_owned(), format!("x {}", lines[0]), "7".to_owned(), "deep".to_owned()];
    assert_eq!(lines, wanted, "{}", text(&done.stderr));
    assert_eq!((text(&done.stderr), done.status.code()), (String::new(), Some(0)));
    assert_eq!(den.show("x")["state"], "free");
    assert!(sockets(&den).is_empty());
}

#[test]
fn through_another_name_and_among_several() {
    let den = Den::new();
    let script = "\"$LK\" run y -- \"$LK\" run x --no-wait -- echo in";
    assert_eq!(text(&output(&mut outer(&den, &["x"], script)).stdout), "in\n");
    let script = "\"$LK\" run a --no-wait -- echo one; \"$LK\" run b a --no-wait -- sh -c 'echo \"$LOCKKEEPER_NAMES\"'";
    assert_eq!(text(&output(&mut outer(&den, &["a", "b", "c"], script)).stdout), "one\na\nb\n");
}

#[test]
fn only_the_same_store_name_and_mode_joins() {
    let den = Den::new();
    for (flags, inner, code) in [
        (&["x"][..], "run y --no-wait", 0),
        (&["x"], "run x z --no-wait", 75),
        (&["x"], "run x --shared --no-wait", 64),
        (&["x", "--shared"], "run x --no-wait", 64),
        (&["x", "--permits", "1/1"], "run x --permits 1/1 --no-wait", 75),
    ] {
        let done = output(&mut outer(&den, flags, &format!("\"$LK\" {inner} -- true")));
        assert_eq!(done.status.code(), Some(code), "{flags:?} {inner}: {}", text(&done.stderr));
    }
    // The same words in another folder are another file.
    let script = "mkdir -p other; cd other; \"$LK\" run x -- sh -c 'echo $LOCKKEEPER_TOKEN'; echo $LOCKKEEPER_TOKEN";
    let done = output(outer(&den, &["x"], script).env("LOCKKEEPER_STORE", "sqlite:locks.db"));
    let said = text(&done.stdout);
    let tokens: Vec<&str> = said.lines().collect();
    assert!(tokens.len() == 2 && tokens[0] != tokens[1], "{said}{}", text(&done.stderr));
    assert!(den.path("other/locks.db").exists());
}

#[test]
fn a_dead_socket_means_an_ordinary_acquire() {
    let den = Den::new();
    let mut command = den.run(["x", "--", "sh", "-c", "echo $LOCKKEEPER_TOKEN"]);
    let gone = den.path("gone").display().to_string();
    let done = output(command.env("LOCKKEEPER_OUTER", format!("{gone}:relative::{gone}")));
    assert!(text(&done.stdout).trim().parse::<u64>().is_ok(), "{}", text(&done.stderr));
}

#[test]
fn the_socket_is_private() {
    let den = Den::new();
    let script = "stat -c %a \"$(dirname \"${LOCKKEEPER_OUTER%%:*}\")\"";
    assert_eq!(text(&output(&mut outer(&den, &["x"], script)).stdout), "700\n");
    let _holder = den.holder("x", &[], "read line < /dev/null; exec sleep 1000");
    let folder = sockets(&den).pop().expect("a folder");
    assert_eq!(std::fs::metadata(folder).expect("a folder").permissions().mode() & 0o777, 0o700);
}

#[test]
fn the_outer_hold_waits_for_an_inner_that_outlives_the_command() {
    let den = Den::new();
    let inner = "echo > in; until [ -e go ]; do sleep 0.02; done; echo > inner-done";
    let script =
        format!("\"$LK\" run x -- sh -c '{inner}' & until [ -e in ]; do sleep 0.02; done; echo $$ > out; exit 5");
    let started = start(&mut outer(&den, &["x", "--lease", "1s"], &script));
    until("the command has ended", || den.path("out").exists());
    let waiter = start(&mut den.run(["x", "--", "sh", "-c", "test -e inner-done && echo after"]));
    until("another waits", || den.waiting("x") == 1);
    // Longer than the lease: it is renewed although the command is over.
    let begun = std::time::Instant::now();
    until("two leases pass", || begun.elapsed() > std::time::Duration::from_secs(2));
    assert_eq!(den.waiting("x"), 1);
    std::fs::write(den.path("go"), "").expect("a file");
    let done = started.end();
    assert_eq!(done.status.code(), Some(5), "{}", text(&done.stderr));
    assert_eq!(text(&waiter.end().stdout), "after\n");
    assert!(sockets(&den).is_empty());
}

#[test]
fn a_loss_is_passed_on() {
    let den = Den::new();
    let script = format!("\"$LK\" run x -- sh -c '{STAY}'; echo $? > code");
    // The outer command waits for the inner one's code although it is asked to end.
    let started = start(&mut outer(&den, &["x", "--lease", "6s"], &format!("trap : TERM; {script}")));
    let inner = group(&den);
    assert!(output(den.lockkeeper().args(["break", "x", "--now", "--reason", "a test"])).status.success());
    let done = started.end();
    assert_eq!(done.status.code(), Some(76), "{}", text(&done.stderr));
    assert_eq!(read(&den.path("code")), "76\n", "{}", text(&done.stderr));
    assert!(alive(inner).is_empty());
}

#[test]
fn an_outer_one_that_is_killed_takes_the_inner_along() {
    let den = Den::new();
    let lease = std::time::Duration::from_secs(2);
    let script = format!("trap '' TERM; \"$LK\" run x -- sh -c 'trap \"\" TERM; {STAY}'");
    let started = start(&mut outer(&den, &["x", "--lease", "2s"], &script));
    let inner = group(&den);
    let look = format!("ps -eo pgid=,stat= | awk '$1 == {} && $2 !~ /^Z/'; echo ran", inner.as_raw_pid());
    let waiter = start(&mut den.run(["x", "--", "sh", "-c", &look]));
    until("another waits", || den.waiting("x") == 1);
    let killed = std::time::Instant::now();
    started.signal(Signal::KILL);
    drop(started);
    assert_eq!(text(&waiter.end().stdout), "ran\n");
    assert!(killed.elapsed() < lease + std::time::Duration::from_secs(2), "{:?}", killed.elapsed());
    until("the guard has cleaned up", || sockets(&den).is_empty());
}

#[test]
fn an_outer_one_that_is_stopped_loses_for_both() {
    let den = Den::new();
    let script = format!("trap '' TERM; \"$LK\" run x -- sh -c 'trap \"\" TERM; {STAY}'");
    let started = start(&mut outer(&den, &["x", "--lease", "2s"], &script));
    let inner = group(&den);
    let look = format!("ps -eo pgid=,stat= | awk '$1 == {} && $2 !~ /^Z/'; echo ran", inner.as_raw_pid());
    let waiter = start(&mut den.run(["x", "--", "sh", "-c", &look]));
    until("another waits", || den.waiting("x") == 1);
    started.signal(Signal::STOP);
    assert_eq!(text(&waiter.end().stdout), "ran\n");
    started.signal(Signal::CONT);
    assert_eq!(started.end().status.code(), Some(76));
}

#[test]
fn an_inner_one_keeps_to_its_own_time() {
    let den = Den::new();
    let script = "\"$LK\" run x --at-most 500ms -- sleep 1000; echo $?";
    let done = output(&mut outer(&den, &["x"], script));
    assert_eq!((text(&done.stdout), done.status.code()), ("76\n".to_owned(), Some(0)), "{}", text(&done.stderr));
}
