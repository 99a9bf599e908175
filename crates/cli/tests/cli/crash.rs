//! `lockkeeper` is killed, stopped, or loses its lock: the command does not outlive the hold.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::support::{Den, alive, output, start, text, until};

/// A command with children that do not end when asked.
const STUBBORN: &str = "trap '' TERM; sh -c 'trap \"\" TERM; sleep 1000; sleep 1000' & sleep 1000; sleep 1000";

/// What the next holder does first: it looks whether anybody of the group is alive. By state, because the dead stay
/// until they are collected, which a stopped `lockkeeper` does not do.
fn look(group: Pid) -> String {
    let group = group.as_raw_pid();
    format!("ps -eo pgid=,stat=,args= | awk '$1 == {group} && $2 !~ /^Z/ {{ print \"alive\", $0 }}'; echo ran")
}

#[test]
fn a_killed_holder_takes_its_command_with_it() {
    // That nobody of the group is alive is never tried twice; how soon the next one runs depends on the machine.
    let in_time = Duration::from_secs(2 + 1);
    let late = |attempt: u32| {
        let took = kill_a_holder();
        println!("attempt {attempt}: the next one ran after {took:?}");
        took > in_time
    };
    assert!(!(1..=3).all(late), "the next one never ran within the lease and a second");
}

/// Kills a holder with a lease of 2 s, and tells how long it took until the next one ran.
fn kill_a_holder() -> Duration {
    let den = Den::new();
    let holder = den.holder("x", &["--lease", "2s"], STUBBORN);
    let group = den.group("x");
    until("the grandchildren run", || alive(group).len() >= 3);
    let waiter = start(&mut den.run(["x", "--", "sh", "-c", &look(group)]));
    until("it stands in line", || den.waiting("x") == 1);
    let killed = Instant::now();
    drop(holder);
    let done = waiter.end();
    let took = killed.elapsed();
    assert_eq!(text(&done.stdout), "ran\n");
    assert!(alive(group).is_empty());
    took
}

#[test]
fn a_killed_holders_command_is_asked_at_once() {
    let den = Den::new();
    let trap = "trap 'echo asked > asked; exit' TERM; : > set; sleep 1000 & wait";
    let holder = den.holder("x", &["--lease", "30s"], trap);
    // Not seen by how many run: the process that becomes the command is one of them before it is the command.
    until("it has set its trap", || den.path("set").exists());
    let killed = Instant::now();
    holder.signal(Signal::KILL);
    until("it is asked", || den.path("asked").exists());
    assert!(killed.elapsed() < Duration::from_secs(20), "long before the lease ends");
}

#[test]
fn a_stopped_holders_command_is_ended_before_the_next_runs() {
    let den = Den::new();
    let holder = den.holder("x", &["--lease", "2s"], STUBBORN);
    let group = den.group("x");
    until("the grandchildren run", || alive(group).len() >= 3);
    let waiter = start(&mut den.run(["x", "--", "sh", "-c", &look(group)]));
    until("it stands in line", || den.waiting("x") == 1);
    let stopped = Instant::now();
    holder.signal(Signal::STOP);
    assert_eq!(text(&waiter.end().stdout), "ran\n");
    until("one and a half leases", || stopped.elapsed() > Duration::from_secs(3));
    holder.signal(Signal::CONT);
    let done = holder.end();
    assert_eq!(done.status.code(), Some(76), "{}", text(&done.stderr));
    assert!(text(&done.stderr).contains("was lost while its command was running"), "{}", text(&done.stderr));
}

#[test]
fn a_broken_lock_ends_the_command_with_76() {
    let den = Den::new();
    for flags in [&["--now", "--reason", "a test"][..], &[]] {
        let holder = den.holder("x", &["--lease", "1500ms"], STUBBORN);
        let group = den.group("x");
        assert!(output(den.lockkeeper().args(["break", "x"]).args(flags)).status.success());
        let done = holder.end();
        assert_eq!(done.status.code(), Some(76), "{}", text(&done.stderr));
        assert!(alive(group).is_empty());
    }
}

#[test]
fn a_broken_lock_lets_nobody_in_before_its_time() {
    let den = Den::new();
    let holder = den.holder("x", &["--lease", "2s"], STUBBORN);
    let group = den.group("x");
    let waiter = start(&mut den.run(["x", "--", "sh", "-c", &look(group)]));
    until("it stands in line", || den.waiting("x") == 1);
    assert!(output(den.lockkeeper().args(["break", "x"])).status.success());
    assert_eq!(text(&waiter.end().stdout), "ran\n");
    assert_eq!(holder.end().status.code(), Some(76));
}

#[test]
fn a_guard_that_is_killed_with_its_lockkeeper_stopped_is_replaced_on_waking() {
    let den = Den::new();
    let holder = den.holder("x", &[], "read line < /dev/null; exec sleep 1000");
    let guard = || super::support::children(holder.pid()).into_iter().find(|(_, line)| line.contains("__guard"));
    let first = guard().expect("a guard").0;
    holder.signal(Signal::STOP);
    rustix::process::kill_process(first, Signal::KILL).expect("it is there");
    holder.signal(Signal::CONT);
    until("another takes its post", || guard().is_some_and(|(next, _)| next != first));
    holder.signal(Signal::TERM);
    assert_eq!(holder.end().status.code(), Some(143));
}
