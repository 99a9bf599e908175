//! Not getting the lock, and waiting for it.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::support::{Den, output, start, text, until};

const HOLD: &str = "read line < /dev/null; exec sleep 1000";

#[test]
fn busy_says_who_and_what_to_do() {
    let den = Den::new();
    let _holder = den.holder("deploy", &["--label", "release"], HOLD);
    for (flags, wanted, within) in [
        (&["--wait", "200ms"][..], 75, " and was not free within 200ms"),
        (&["--no-wait"], 75, ""),
        (&["--wait", "100ms", "--busy-exit", "3"], 3, " and was not free within 100ms"),
    ] {
        let done = output(den.run(["deploy"]).args(flags).args(["--", "echo", "ran"]));
        assert_eq!(done.status.code(), Some(wanted));
        assert!(done.stdout.is_empty());
        let said = text(&done.stderr);
        assert!(said.starts_with("error: `deploy` is held by `"), "{said}");
        assert!(said.contains("(release)` (token ") && said.contains(&format!("){within}\n")), "{said}");
        assert!(said.contains("\n  hint: see the line with `lockkeeper show deploy`, or wait "), "{said}");
    }
}

#[test]
fn busy_that_is_said_to_be_fine_is_quiet() {
    let den = Den::new();
    let _holder = den.holder("deploy", &[], HOLD);
    for flags in [&["--no-wait"][..], &["--wait", "100ms"]] {
        let done = output(den.run(["deploy", "--busy-exit", "0"]).args(flags).args(["--", "echo", "ran"]));
        assert_eq!((done.status.code(), text(&done.stdout)), (Some(0), String::new()));
        assert!(!text(&done.stderr).contains("error"), "{}", text(&done.stderr));
    }
}

#[test]
fn what_stays_taken_after_its_holder_can_be_freed() {
    let den = Den::new();
    assert!(output(&mut den.run(["x", "--at-least", "1h", "--", "true"])).status.success());
    let said = text(&output(den.lockkeeper().args(["break", "x"])).stderr);
    assert!(said.contains("nobody holds `x` any more") && said.contains("break --now"), "{said}");
    assert_eq!(output(&mut den.run(["x", "--no-wait", "--", "true"])).status.code(), Some(75));
    let said = text(&output(den.lockkeeper().args(["break", "x", "--now", "--reason", "a typing error"])).stderr);
    assert!(said.contains("is free now"), "{said}");
    assert!(output(&mut den.run(["x", "--no-wait", "--", "true"])).status.success());
}

#[test]
fn a_waiter_runs_when_the_holder_is_done() {
    let den = Den::new();
    let holder = den.holder("x", &[], HOLD);
    let waiter = start(&mut den.run(["x", "--wait", "forever", "--", "echo", "ran"]));
    until("it stands in line", || den.waiting("x") == 1);
    let freed = Instant::now();
    holder.signal(Signal::TERM);
    let done = waiter.end();
    assert_eq!(text(&done.stdout), "ran\n");
    assert!(freed.elapsed() < Duration::from_secs(20), "it did not wait for the lease of 30 s to end");
    drop(holder);
}

#[test]
fn waiting_is_told_in_plain_lines_where_there_is_no_terminal() {
    let den = Den::new();
    let _holder = den.holder("x", &[], HOLD);
    let mut waiter = start(den.run(["x", "--", "true"]).stderr(Stdio::piped()));
    let mut lines = BufReader::new(waiter.child().stderr.take().expect("a pipe")).lines();
    let said = lines.next().expect("a line").expect("text");
    assert!(said.starts_with("lockkeeper: waiting for `x`, 1st in line: held by `"), "{said}");
    assert!(said.contains(" (for ") && !said.contains('\x1b'), "{said}");
}

#[test]
fn who_gets_it_at_once_hears_nothing() {
    let den = Den::new();
    assert!(output(&mut den.run(["x", "--", "true"])).stderr.is_empty());
}

#[test]
fn a_signal_while_waiting_leaves_the_line() {
    let den = Den::new();
    let _holder = den.holder("x", &[], HOLD);
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let waiter = start(&mut den.run(["x", "--", "true"]));
        until("it stands in line", || den.waiting("x") == 1);
        waiter.signal(signal);
        assert_eq!(waiter.end().status.code(), Some(code));
        assert_eq!(den.waiting("x"), 0, "nothing was left behind");
    }
}

#[test]
fn at_least_keeps_the_name_taken() {
    let den = Den::new();
    let begun = Instant::now();
    assert!(output(&mut den.run(["x", "--at-least", "1s", "--", "true"])).status.success());
    let said = text(&output(&mut den.run(["x", "--no-wait", "--", "true"])).stderr);
    assert!(said.contains("is kept after `") && said.contains("for another"), "{said}");
    assert!(output(&mut den.run(["x", "--", "true"])).status.success());
    assert!(begun.elapsed() >= Duration::from_secs(1));
}

#[test]
fn at_most_ends_the_command_in_time() {
    let den = Den::new();
    // Once a command that ends when asked, once one that does not.
    for script in ["read line < /dev/null; exec sleep 1000", "trap '' TERM; while :; do sleep 1000; done"] {
        let begun = Instant::now();
        let done = output(&mut den.run(["x", "--at-most", "1s", "--", "sh", "-c", script]));
        assert_eq!(done.status.code(), Some(76), "{}", text(&done.stderr));
        assert!(begun.elapsed() < Duration::from_secs(20));
        let said = text(&done.stderr);
        assert!(said.contains("was asked to end") && said.contains("hint: it was given 1s by `--at-most`"), "{said}");
    }
}
