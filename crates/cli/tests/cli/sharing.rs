//! Not one at a time: readers, permits, and several names taken together.

use rustix::process::Signal;

use super::support::{Den, Started, alive, output, start, text, until};

const HOLD: &str = "read line < /dev/null; exec sleep 1000";

/// A `run` with these arguments that stays in, and has made the file `mark`.
fn inside(den: &Den, mark: &str, args: &[&str]) -> Started {
    let script = format!("echo $$ > {mark}.new; mv {mark}.new {mark}; {HOLD}");
    let started = start(den.run(args).args(["--", "sh", "-c", &script]));
    until("it is in", || den.path(mark).exists());
    started
}

#[test]
fn readers_share_and_a_writer_is_alone() {
    let den = Den::new();
    let one = inside(&den, "one", &["x", "--shared"]);
    let two = inside(&den, "two", &["x", "--shared"]);
    let busy = output(&mut den.run(["x", "--exclusive", "--no-wait", "--", "echo", "ran"]));
    assert_eq!(busy.status.code(), Some(75), "{}", text(&busy.stderr));
    assert!(text(&busy.stderr).contains("and 1 more"), "{}", text(&busy.stderr));
    let writer = start(&mut den.run(["x", "--exclusive", "--", "echo", "wrote"]));
    until("the writer stands in line", || den.waiting("x") == 1);
    one.signal(Signal::TERM);
    two.signal(Signal::TERM);
    assert_eq!(text(&writer.end().stdout), "wrote\n");
    let writer = inside(&den, "three", &["x", "--exclusive"]);
    assert_eq!(output(&mut den.run(["x", "--shared", "--no-wait", "--", "true"])).status.code(), Some(75));
    drop((one, two, writer));
}

#[test]
fn as_many_as_there_are_permits() {
    let den = Den::new();
    let one = inside(&den, "one", &["x", "--permits", "1/3"]);
    let two = inside(&den, "two", &["x", "--permits", "2/3"]);
    assert_eq!(output(&mut den.run(["x", "--permits", "1/3", "--no-wait", "--", "true"])).status.code(), Some(75));
    one.signal(Signal::TERM);
    assert_eq!(one.end().status.code(), Some(143));
    let done = output(&mut den.run(["x", "--permits", "1/3", "--", "sh", "-c", "echo $LOCKKEEPER_NAME"]));
    assert_eq!((text(&done.stdout), done.status.code()), ("x\n".to_owned(), Some(0)), "{}", text(&done.stderr));
    drop(two);
}

#[test]
fn one_name_is_used_in_one_way_at_a_time() {
    let den = Den::new();
    let _holder = den.holder("x", &[], HOLD);
    for (flags, hint) in [
        (&["--shared"][..], "hint: all who use the name at a time say `--shared` or `--exclusive`"),
        (&["--permits", "1/2"], "hint: all who use the name at a time say `--permits` with the same N"),
    ] {
        let done = output(den.run(["x"]).args(flags).args(["--", "true"]));
        assert_eq!(done.status.code(), Some(64));
        assert!(text(&done.stderr).contains(hint), "{}", text(&done.stderr));
    }
    let _reader = inside(&den, "reader", &["y", "--shared"]);
    let done = output(&mut den.run(["y", "--", "true"]));
    assert_eq!(done.status.code(), Some(64));
    assert!(text(&done.stderr).contains("read-write needs `--shared` or `--exclusive`"), "{}", text(&done.stderr));
}

#[test]
fn flags_that_do_not_go_together_are_refused() {
    let den = Den::new();
    let wrong: [&[&str]; 9] = [
        &["x", "--shared", "--exclusive"],
        &["x", "--shared", "--permits", "1/2"],
        &["x", "--exclusive", "--permits", "1/2"],
        &["x", "--permits", "3/2"],
        &["x", "--permits", "1"],
        &["a", "b", "--shared"],
        &["a", "b", "--permits", "1/2"],
        &["a", "b", "--at-most", "1s"],
        &["a", "b c"],
    ];
    for args in wrong {
        let done = output(den.run(args).args(["--", "true"]));
        assert_eq!(done.status.code(), Some(64), "{args:?}");
        assert!(text(&done.stderr).starts_with("error: "), "{}", text(&done.stderr));
    }
    assert!(!den.path("locks.db").exists(), "the store was not even opened");
    let said = text(&output(&mut den.run(["a", "b", "--shared", "--", "true"])).stderr);
    assert!(said.starts_with("error: `--shared` works with one name, not with several\n  hint: "), "{said}");
}

#[test]
fn several_are_taken_together_and_told() {
    let den = Den::new();
    let script =
        "echo \"$LOCKKEEPER_NAMES\"; echo \"$LOCKKEEPER_TOKENS\"; echo \"[$LOCKKEEPER_NAME$LOCKKEEPER_TOKEN]\"";
    let mut command = den.run(["b", "a", "b", "--", "sh", "-c", script]);
    let done = output(command.env("LOCKKEEPER_NAME", "of an outer one").env("LOCKKEEPER_TOKEN", "1"));
    let said = text(&done.stdout);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!((lines[0], lines[1], lines[4]), ("a", "b", "[]"), "{said}");
    for (line, name) in [(lines[2], "a="), (lines[3], "b=")] {
        assert!(line.strip_prefix(name).is_some_and(|token| token.parse::<u64>().is_ok()), "{said}");
    }
    // The same name twice is one name.
    let done = output(&mut den.run(["a", "a", "--", "sh", "-c", "echo $LOCKKEEPER_NAME $LOCKKEEPER_NAMES"]));
    assert_eq!(text(&done.stdout), "a\n");
}

#[test]
fn all_or_nothing() {
    let den = Den::new();
    let holder = den.holder("b", &[], HOLD);
    let done = output(&mut den.run(["a", "b", "c", "--no-wait", "--", "true"]));
    assert_eq!(done.status.code(), Some(75));
    assert!(text(&done.stderr).starts_with("error: `b` is held by `"), "{}", text(&done.stderr));
    for name in ["a", "c"] {
        assert_eq!(den.show(name)["state"], "free");
    }
    let waiter = start(&mut den.run(["a", "b", "--", "echo", "ran"]));
    until("it stands in line", || den.waiting("b") == 1);
    assert_eq!(den.show("a")["state"], "held");
    holder.signal(Signal::TERM);
    assert_eq!(text(&waiter.end().stdout), "ran\n");
    drop(holder);
}

#[test]
fn one_of_several_that_is_lost_ends_the_command() {
    let den = Den::new();
    let holder = inside(&den, "in-a", &["a", "b", "--lease", "2s"]);
    let group = den.group("a");
    assert!(output(den.lockkeeper().args(["break", "b"])).status.success());
    let done = holder.end();
    assert_eq!(done.status.code(), Some(76), "{}", text(&done.stderr));
    assert!(text(&done.stderr).contains("one of `a` and `b` was lost"), "{}", text(&done.stderr));
    assert!(alive(group).is_empty());
    assert_eq!(den.show("a")["state"], "free", "the other is given back");
}
