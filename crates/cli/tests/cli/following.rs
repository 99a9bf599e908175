//! `watch`: the lines as they change.

use std::process::Command;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::looking::{claim, redact};
use super::support::{Den, Said, Started, output, start, text, until};

const HOLD: &str = "read line < /dev/null; exec sleep 1000";

fn watch(den: &Den, args: &[&str]) -> (Started, Said) {
    let mut started = start(den.lockkeeper().arg("watch").args(args));
    let said = Said::of(&mut started);
    (started, said)
}

fn next(lines: &Said) -> Value {
    let mut value: Value = serde_json::from_str(&lines.next()).expect("JSON");
    let at = value["at"].as_str().expect("a time");
    assert!(at.len() == 24 && at.ends_with('Z') && at.contains('T'), "{at}");
    value["at"] = json!("<at>");
    redact(&mut value);
    value
}

fn shown(state: &str, claims: &[Value]) -> Value {
    let (kind, capacity) = if claims.is_empty() { (Value::Null, Value::Null) } else { (json!("mutex"), json!(1)) };
    json!({
        "schema": "lockkeeper.watch/1", "at": "<at>", "name": "x", "state": state, "kind": kind,
        "capacity": capacity, "claims": claims,
    })
}

#[test]
fn json_of_watch() {
    let den = Den::new();
    let (watching, lines) = watch(&den, &["x", "--json"]);
    assert_eq!(next(&lines), shown("free", &[]));
    let holder = den.holder("x", &["--label", "one"], HOLD);
    assert_eq!(next(&lines), shown("held", &[claim("holding", "one", "")]));
    let waiter = start(&mut den.run(["x", "--label", "two", "--", "sh", "-c", HOLD]));
    assert_eq!(next(&lines), shown("held", &[claim("holding", "one", ""), claim("waiting", "two", "")]));
    holder.signal(Signal::TERM);
    // In between it may be seen free, and at first the store may not know since when the new one holds.
    let handed_on = loop {
        let mut value = next(&lines);
        if value["claims"][0]["state"] == "holding" {
            value["claims"][0]["held_ms"] = json!("<ms>");
            break value;
        }
    };
    assert_eq!(handed_on, shown("held", &[claim("holding", "two", "")]));
    waiter.signal(Signal::TERM);
    assert_eq!(next(&lines), shown("free", &[]));
    watching.signal(Signal::INT);
    let done = watching.end();
    assert_eq!((done.status.code(), text(&done.stderr)), (Some(130), String::new()));
    drop((holder, waiter));
}

#[test]
fn all_locks_in_plain_lines() {
    let den = Den::new();
    let _one = den.holder("a", &["--label", "one"], HOLD);
    let (watching, lines) = watch(&den, &[]);
    let line = || lines.next();
    let first = line();
    assert!(
        first.contains(" `a` is held by `") && first.contains("(one)` (token ") && !first.contains('\x1b'),
        "{first}"
    );
    let two = den.holder("b", &["--label", "two"], HOLD);
    let second = line();
    assert!(second.contains(" `b` is held by `") && second.contains("(two)`"), "{second}");
    two.signal(Signal::TERM);
    assert!(line().ends_with(" `b` is free"));
    watching.signal(Signal::TERM);
    assert_eq!(watching.end().status.code(), Some(143));
    drop(two);
}

#[test]
fn it_ends_when_nobody_reads() {
    let den = Den::new();
    let program = den.lockkeeper();
    let mut shell = Command::new("sh");
    let script = "{ \"$LK\" watch x; echo $? > code; } | { read line; echo > read; }";
    shell.args(["-c", script]).envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let watching = start(shell.env("LK", program.get_program()).current_dir(den.path("")));
    until("the first line is read", || den.path("read").exists());
    let _holder = den.holder("x", &[], HOLD);
    until("it has noticed", || den.path("code").exists());
    assert!(watching.end().status.success());
    assert_eq!(super::support::read(&den.path("code")), "0\n");
}

#[test]
fn a_bad_name_is_refused() {
    let den = Den::new();
    assert_eq!(output(den.lockkeeper().args(["watch", "a b"])).status.code(), Some(64));
}
