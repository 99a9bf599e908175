//! `ls`, `show` and `break`: what people and programs read.

use std::time::Duration;

use serde_json::{Value, json};

use super::support::{Den, output, start, text, until};

const HOLD: &str = "read line < /dev/null; exec sleep 1000";

/// Replaces what differs from run to run by its type, so that names and types of all fields are compared.
pub fn redact(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match name.as_str() {
                    "claim" | "token" | "host" | "version" if value.is_string() => *value = json!(format!("<{name}>")),
                    "pid" => *value = json!("<number>"),
                    name if name.ends_with("_ms") && value.is_u64() => *value = json!("<ms>"),
                    _ => redact(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redact),
        _ => {}
    }
}

fn printed(den: &Den, args: &[&str]) -> Value {
    let done = output(den.lockkeeper().args(args));
    assert!(done.status.success(), "{}", text(&done.stderr));
    let said = text(&done.stdout);
    assert_eq!(said.lines().count(), 1, "one object on one line: {said}");
    let mut value = serde_json::from_str(&said).expect("JSON");
    redact(&mut value);
    value
}

pub fn claim(state: &str, label: &str, note: &str) -> Value {
    let waiting = state == "waiting";
    json!({
        "claim": "<claim>",
        "state": state,
        "owner": { "host": "<host>", "pid": "<number>", "label": label },
        "weight": 1,
        "token": if waiting { Value::Null } else { json!("<token>") },
        "age_ms": "<ms>",
        "held_ms": if waiting { Value::Null } else { json!("<ms>") },
        "lease_left_ms": "<ms>",
        "note": note,
    })
}

#[test]
fn json_of_ls_and_show() {
    let den = Den::new();
    assert_eq!(printed(&den, &["ls", "--json"]), json!({ "schema": "lockkeeper.ls/1", "rows": [], "circles": [] }));
    let free = json!({
        "schema": "lockkeeper.show/1", "name": "a", "state": "free", "kind": null, "capacity": null, "claims": [],
        "circles": [],
    });
    assert_eq!(printed(&den, &["show", "a", "--json"]), free);

    let _holder = den.holder("a", &["--label", "first", "--note", "ä\nb"], HOLD);
    let _waiter = start(&mut den.run(["a", "--label", "second", "--", "true"]));
    until("it stands in line", || den.waiting("a") == 1);
    let row = json!({
        "name": "a", "kind": "mutex", "capacity": 1, "state": "held",
        "holders": [claim("holding", "first", "ä\nb")], "waiting": 1,
    });
    assert_eq!(printed(&den, &["ls", "--json"]), json!({ "schema": "lockkeeper.ls/1", "rows": [row], "circles": [] }));
    let shown = json!({
        "schema": "lockkeeper.show/1", "name": "a", "state": "held", "kind": "mutex", "capacity": 1,
        "claims": [claim("holding", "first", "ä\nb"), claim("waiting", "second", "")],
        "circles": [],
    });
    assert_eq!(printed(&den, &["show", "a", "--json"]), shown);
}

#[test]
fn ls_and_show_for_people() {
    let den = Den::new();
    let done = output(den.lockkeeper().arg("ls"));
    assert!(done.stdout.is_empty() && text(&done.stderr).contains("nobody holds"), "talk is not data");
    assert_eq!(text(&output(den.lockkeeper().args(["show", "a"])).stdout), "`a` is free\n");

    let _holder = den.holder("a", &["--label", "first", "--note", "two\nlines"], HOLD);
    let _waiter = start(&mut den.run(["a", "--label", "second", "--", "true"]));
    until("it stands in line", || den.waiting("a") == 1);
    let table = text(&output(den.lockkeeper().arg("ls")).stdout);
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["NAME", "KIND", "HOLDER", "TOKEN", "HELD", "LEFT", "WAITING"]);
    assert_eq!((rows.len(), rows[1][0], rows[1][1], rows[1].last()), (2, "a", "mutex", Some(&"1")), "{table}");
    assert!(table.contains("(first)") && !table.contains('\x1b'), "{table}");
    let shown = text(&output(den.lockkeeper().args(["show", "a"])).stdout);
    for part in
        ["a  mutex, held\n", "  held by: ", "(first)\n", "    note: two lines\n", "  1st in line: ", "(second)\n"]
    {
        assert!(shown.contains(part), "`{part}` in\n{shown}");
    }
}

#[test]
fn break_lets_the_hold_run_out() {
    let den = Den::new();
    let _holder = den.holder("a", &["--label", "first", "--lease", "20s"], HOLD);
    let broken = json!({
        "schema": "lockkeeper.break/1", "name": "a", "now": false, "reason": null,
        "broken": [{
            "claim": "<claim>", "owner": { "host": "<host>", "pid": "<number>", "label": "first" },
            "token": "<token>", "outcome": "broken", "stays_taken_ms": "<ms>",
        }],
    });
    assert_eq!(printed(&den, &["break", "a", "--json"]), broken);
    let shown = den.show("a");
    assert_eq!(shown["state"], "leaving");
    assert!(shown["claims"][0]["lease_left_ms"].as_u64().expect("a number") > 5_000, "it is not free before its time");
    // Twice is not worse than once.
    let done = output(den.lockkeeper().args(["break", "a"]));
    assert!(done.status.success() && text(&done.stderr).contains("stays taken"), "{}", text(&done.stderr));
}

#[test]
fn break_now_frees_and_says_what_that_means() {
    let den = Den::new();
    let _holder = den.holder("a", &["--lease", "60s"], HOLD);
    let done = output(den.lockkeeper().args(["break", "a", "--now", "--reason", "host is\ngone", "--json"]));
    assert!(done.status.success());
    let said = text(&done.stderr);
    assert!(said.starts_with("lockkeeper: breaking `a`: host is gone\n"), "{said}");
    assert!(said.contains("is free now") && said.contains("there may be two"), "{said}");
    let mut value: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    assert_eq!(value["broken"][0]["stays_taken_ms"], 0);
    redact(&mut value);
    assert_eq!((&value["now"], &value["reason"]), (&json!(true), &json!("host is\ngone")));
    let begun = std::time::Instant::now();
    assert!(output(&mut den.run(["a", "--no-wait", "--", "true"])).status.success());
    assert!(begun.elapsed() < Duration::from_secs(30));
}

#[test]
fn breaking_what_nobody_holds_is_no_failure() {
    let den = Den::new();
    let empty = json!({ "schema": "lockkeeper.break/1", "name": "a", "now": false, "reason": null, "broken": [] });
    assert_eq!(printed(&den, &["break", "a", "--json"]), empty);
}

#[test]
fn a_circle_is_named() {
    let den = Den::new();
    // Each holds one and wants the other: the inner run is one line of work with the outer one.
    let nested = |own: &str, other: &str| {
        let script =
            format!("echo > in-{own}; until [ -e in-{other} ]; do sleep 0.02; done; \"$LK\" run {other} -- true");
        let mut command = den.run([own, "--", "sh", "-c", &script]);
        start(command.env("LK", env!("CARGO_BIN_EXE_lockkeeper")))
    };
    let both = [nested("a", "b"), nested("b", "a")];
    until("both wait", || den.waiting("a") == 1 && den.waiting("b") == 1);
    let wait = |name: &str| {
        json!({
            "name": name, "claim": "<claim>", "owner": { "host": "<host>", "pid": "<number>", "label": "true" }
        })
    };
    for args in [&["ls", "--json"][..], &["show", "a", "--json"], &["show", "b", "--json"]] {
        let mut circles = printed(&den, args)["circles"].take();
        // The smallest claim id is first, which is a matter of luck.
        circles[0]["waits"].as_array_mut().expect("a list").sort_by_key(|wait| wait["name"].to_string());
        assert_eq!(circles, json!([{ "waits": [wait("a"), wait("b")] }]));
    }
    for args in [&["ls"][..], &["show", "a"]] {
        let said = text(&output(den.lockkeeper().args(args)).stdout);
        assert!(said.contains("\ncircle: `") && said.contains("waits for `b`") && said.contains("  hint: "), "{said}");
    }
    drop(both);
}
