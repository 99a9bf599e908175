//! `elect`: one leads, the others see who.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::looking::redact;
use super::support::{Den, Said, Started, output, start, text, until};

const HOLD: &str = "read line < /dev/null; exec sleep 1000";

fn elect(den: &Den, args: &[&str]) -> std::process::Command {
    let mut command = den.lockkeeper();
    command.arg("elect").args(args);
    command
}

fn leader(den: &Den, mark: &str, args: &[&str]) -> Started {
    let script = format!("echo $LOCKKEEPER_TOKEN > {mark}; {HOLD}");
    let started = start(elect(den, args).args(["--", "sh", "-c", &script]));
    until("it leads", || den.path(mark).exists());
    started
}

fn watcher(den: &Den, args: &[&str]) -> (Started, Said) {
    let mut started = start(&mut elect(den, args));
    let said = Said::of(&mut started);
    (started, said)
}

#[test]
fn one_leads_and_then_the_next() {
    let den = Den::new();
    let first = leader(&den, "first", &["x", "--note", "10.0.0.7:9000"]);
    assert_eq!(den.show("x")["kind"], "election");
    let busy = output(&mut elect(&den, &["x", "--no-wait", "--", "true"]));
    assert_eq!(busy.status.code(), Some(75), "{}", text(&busy.stderr));
    let second = start(&mut elect(&den, &["x", "--", "sh", "-c", "echo led; exit 3"]));
    until("it stands", || den.waiting("x") == 1);
    first.signal(Signal::TERM);
    let done = second.end();
    assert_eq!((text(&done.stdout), done.status.code()), ("led\n".to_owned(), Some(3)));
    assert_eq!(first.end().status.code(), Some(143));
}

#[test]
fn watchers_are_told_of_every_leader() {
    let den = Den::new();
    let (watching, lines) = watcher(&den, &["x", "--watch", "--json"]);
    let next = || {
        let mut value: Value = serde_json::from_str(&lines.next()).expect("JSON");
        redact(&mut value);
        value
    };
    let nobody = json!({ "schema": "lockkeeper.elect/1", "name": "x", "leader": null });
    assert_eq!(next(), nobody);
    let first = leader(&den, "first", &["x", "--note", "ä", "--label", "one"]);
    let leading = json!({
        "schema": "lockkeeper.elect/1", "name": "x",
        "leader": {
            "owner": { "host": "<host>", "pid": "<number>", "label": "one" }, "token": "<token>", "note": "ä"
        },
    });
    assert_eq!(next(), leading);
    first.signal(Signal::TERM);
    assert_eq!(next(), nobody);
    watching.signal(Signal::INT);
    let done = watching.end();
    assert_eq!(done.status.code(), Some(130), "{}", text(&done.stderr));
    drop(first);
}

#[test]
fn watching_for_people() {
    let den = Den::new();
    let _first = leader(&den, "first", &["x", "--note", "two\nlines", "--label", "one"]);
    let (watching, lines) = watcher(&den, &["x", "--watch"]);
    let said = lines.next();
    assert!(said.contains("(one) leads with token ") && said.ends_with(": two lines"), "{said}");
    drop(watching);
}

#[test]
fn who_only_watches_has_no_terms() {
    let den = Den::new();
    let wrong: [&[&str]; 5] = [
        &["x"],
        &["x", "--watch", "--", "true"],
        &["x", "--watch", "--wait", "1s"],
        &["x", "--json", "--", "true"],
        &["a b", "--watch"],
    ];
    for args in wrong {
        let done = output(&mut elect(&den, args));
        assert_eq!(done.status.code(), Some(64), "{args:?}: {}", text(&done.stderr));
    }
}
