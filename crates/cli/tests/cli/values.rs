//! `limit`, `counter` and `cell`.

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use super::looking::redact;
use super::support::{Den, output, start, text};

/// What a command printed, and its exit code.
fn said(den: &Den, args: &[&str]) -> (String, Option<i32>) {
    let done = output(den.lockkeeper().args(args));
    (text(&done.stdout), done.status.code())
}

fn object(den: &Den, args: &[&str]) -> (Value, Option<i32>) {
    let (text, code) = said(den, args);
    let mut value = serde_json::from_str(&text).expect("JSON");
    redact(&mut value);
    (value, code)
}

#[test]
fn a_limit_admits_so_many() {
    let den = Den::new();
    let take = ["limit", "mails", "--rate", "2/1h"];
    for _ in 0..2 {
        assert_eq!(said(&den, &take), (String::new(), Some(0)));
    }
    let done = output(den.lockkeeper().args(take));
    assert_eq!((done.stdout.len(), done.status.code()), (0, Some(75)));
    let told = text(&done.stderr);
    assert!(told.starts_with("error: the limit of `mails` is reached; retry in 29m"), "{told}");
    assert!(told.contains("\n  hint: wait for it with `--wait "), "{told}");
    assert_eq!(said(&den, &["limit", "mails", "--rate", "2/1h", "--take", "3"]).1, Some(64), "it never can");
    for wrong in [&["--rate", "2"][..], &["--rate", "0/1s"], &["--rate", "2/1s", "--take", "0"], &[]] {
        assert_eq!(output(den.lockkeeper().args(["limit", "mails"]).args(wrong)).status.code(), Some(64), "{wrong:?}");
    }
}

#[test]
fn a_limit_can_be_waited_for() {
    let den = Den::new();
    let begun = std::time::Instant::now();
    for _ in 0..3 {
        assert_eq!(said(&den, &["limit", "x", "--rate", "1/500ms", "--wait", "20s"]), (String::new(), Some(0)));
    }
    assert!(begun.elapsed() >= Duration::from_millis(990), "{:?}", begun.elapsed());
    assert_eq!(said(&den, &["limit", "y", "--rate", "1/1h", "--fixed"]).1, Some(0));
    assert_eq!(said(&den, &["limit", "y", "--rate", "1/1h", "--fixed", "--wait", "1s"]).1, Some(75));
}

#[test]
fn json_of_limit() {
    let den = Den::new();
    let take = ["limit", "x", "--rate", "1/1h", "--json"];
    let admitted = json!({
        "schema": "lockkeeper.limit/1", "name": "x", "admitted": true, "remaining": 0,
        "full_in_ms": "<ms>", "retry_after_ms": null,
    });
    assert_eq!(object(&den, &take), (admitted, Some(0)));
    let limited = json!({
        "schema": "lockkeeper.limit/1", "name": "x", "admitted": false, "remaining": 0,
        "full_in_ms": null, "retry_after_ms": "<ms>",
    });
    assert_eq!(object(&den, &take), (limited, Some(75)));
}

#[test]
fn a_counter_is_never_oversold() {
    let den = Den::new();
    assert_eq!(said(&den, &["counter", "stock", "get"]), ("0\n".to_owned(), Some(0)));
    assert_eq!(said(&den, &["counter", "stock", "add", "5"]), ("5\n".to_owned(), Some(0)));
    assert_eq!(said(&den, &["counter", "stock", "add", "-2"]), ("3\n".to_owned(), Some(0)));
    let takers: Vec<_> = (0..6).map(|_| start(den.lockkeeper().args(["counter", "stock", "take", "1"]))).collect();
    let codes: Vec<_> = takers.into_iter().map(|taker| taker.end().status.code()).collect();
    assert_eq!(codes.iter().filter(|code| **code == Some(0)).count(), 3, "{codes:?}");
    assert_eq!(codes.iter().filter(|code| **code == Some(75)).count(), 3, "{codes:?}");
    assert_eq!(said(&den, &["counter", "stock", "take", "2", "--floor", "-5"]), ("-2\n".to_owned(), Some(0)));
    let done = output(den.lockkeeper().args(["counter", "stock", "take", "1"]));
    let told = text(&done.stderr);
    assert!(told.starts_with("error: `stock` is -2, and 1 less would be below the floor of 0\n"), "{told}");
    for wrong in [&["take", "-1"][..], &["add", "x"], &[]] {
        assert_eq!(output(den.lockkeeper().args(["counter", "stock"]).args(wrong)).status.code(), Some(64));
    }
}

#[test]
fn json_of_counter() {
    let den = Den::new();
    let shown = |done, value| json!({ "schema": "lockkeeper.counter/1", "name": "x", "done": done, "value": value });
    assert_eq!(object(&den, &["counter", "x", "add", "2", "--json"]), (shown(true, 2), Some(0)));
    assert_eq!(object(&den, &["counter", "x", "take", "3", "--json"]), (shown(false, 2), Some(75)));
    assert_eq!(object(&den, &["counter", "x", "--json", "get"]), (shown(true, 2), Some(0)));
}

#[test]
fn a_cell_is_changed_by_who_knows_its_version() {
    let den = Den::new();
    assert_eq!(said(&den, &["cell", "x", "get"]), (String::new(), Some(75)));
    let (version, code) = said(&den, &["cell", "x", "cas", "0", "a"]);
    assert_eq!(code, Some(0));
    let version = version.trim();
    let (next, code) = said(&den, &["cell", "x", "cas", version, "-b"]);
    assert_eq!(code, Some(0));
    let done = output(den.lockkeeper().args(["cell", "x", "cas", version, "c"]));
    assert_eq!(done.status.code(), Some(75));
    let told = text(&done.stderr);
    assert!(told.starts_with(&format!("error: `x` has version {}, not {version}\n", next.trim())), "{told}");
    assert_eq!(said(&den, &["cell", "x", "get"]), ("-b".to_owned(), Some(0)));
    assert_eq!(said(&den, &["cell", "x", "rm"]), (String::new(), Some(0)));
    assert_eq!(said(&den, &["cell", "x", "get"]).1, Some(75));
}

#[test]
fn a_cell_holds_any_bytes() {
    let den = Den::new();
    let odd = b"\xff\n\0 end";
    let mut put = start(den.lockkeeper().args(["cell", "x", "put", "-"]).stdin(Stdio::piped()));
    put.child().stdin.take().expect("a pipe").write_all(odd).expect("a reader");
    assert_eq!(put.end().status.code(), Some(0));
    assert_eq!(output(den.lockkeeper().args(["cell", "x", "get"])).stdout, odd);
    let mut put = den.lockkeeper();
    put.args(["cell", "x", "put"]).arg(OsStr::from_bytes(b"a\xffb"));
    assert!(output(&mut put).status.success());
    assert_eq!(output(den.lockkeeper().args(["cell", "x", "get"])).stdout, b"a\xffb");
    let mut put = start(den.lockkeeper().args(["cell", "x", "put", "-"]).stdin(Stdio::piped()));
    let large = vec![b'x'; 64 * 1024 + 1];
    let _ = put.child().stdin.take().expect("a pipe").write_all(&large);
    assert_eq!(put.end().status.code(), Some(64));
    assert_eq!(output(den.lockkeeper().args(["cell", "x", "get"])).stdout, b"a\xffb", "nothing was changed");
}

#[test]
fn json_of_cell() {
    let den = Den::new();
    let cell = |done: bool, version: Value, value: Value| json!({ "schema": "lockkeeper.cell/1", "name": "x", "done": done, "version": version, "value_base64": value });
    let version = json!("<version>");
    assert_eq!(object(&den, &["cell", "x", "get", "--json"]), (cell(false, Value::Null, Value::Null), Some(75)));
    assert_eq!(
        object(&den, &["cell", "x", "put", "ab", "--json"]),
        (cell(true, version.clone(), Value::Null), Some(0))
    );
    assert_eq!(object(&den, &["cell", "x", "get", "--json"]), (cell(true, version.clone(), json!("YWI=")), Some(0)));
    let conflict = object(&den, &["cell", "x", "cas", "0", "c", "--json"]);
    assert_eq!(conflict, (cell(false, version, json!("YWI=")), Some(75)));
    assert_eq!(object(&den, &["cell", "x", "rm", "--json"]), (cell(true, Value::Null, Value::Null), Some(0)));
}
