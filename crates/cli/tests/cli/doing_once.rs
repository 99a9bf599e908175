//! `once`: a command that is recorded is not run again.

use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use super::support::{Den, LIMIT, alive, output, read, start, text, until};

fn once(den: &Den, args: &[&str]) -> Command {
    let mut command = den.lockkeeper();
    command.arg("once").args(args);
    command
}

const COUNT: &str = "echo did >> log; echo out; echo err >&2";

#[test]
fn the_second_call_runs_nothing() {
    let den = Den::new();
    let first = output(&mut once(&den, &["k", "--", "sh", "-c", COUNT]));
    assert_eq!((text(&first.stdout), text(&first.stderr)), ("out\n".to_owned(), "err\n".to_owned()));
    assert_eq!(first.status.code(), Some(0));
    let second = output(&mut once(&den, &["k", "--", "sh", "-c", COUNT]));
    assert_eq!((second.stdout.len(), second.stderr.len(), second.status.code()), (0, 0, Some(0)));
    let third = output(&mut once(&den, &["k", "--print", "--", "sh", "-c", COUNT]));
    assert_eq!((text(&third.stdout), third.status.code()), ("out\n".to_owned(), Some(0)));
    assert_eq!(read(&den.path("log")), "did\n");
    assert!(output(&mut once(&den, &["other", "--", "sh", "-c", COUNT])).status.success());
    assert_eq!(read(&den.path("log")), "did\ndid\n");
}

#[test]
fn many_at_once_run_it_once() {
    let den = Den::new();
    let all: Vec<_> = (0..6).map(|_| start(&mut once(&den, &["k", "--print", "--", "sh", "-c", COUNT]))).collect();
    for one in all {
        let done = one.end();
        assert_eq!((text(&done.stdout), done.status.code()), ("out\n".to_owned(), Some(0)), "{}", text(&done.stderr));
    }
    assert_eq!(read(&den.path("log")), "did\n");
}

#[test]
fn a_failure_is_passed_on_and_not_recorded() {
    let den = Den::new();
    for flags in [&["k"][..], &["k", "--never-again"]] {
        let failed = output(once(&den, flags).args(["--", "sh", "-c", "echo half; exit 3"]));
        assert_eq!((text(&failed.stdout), failed.status.code()), ("half\n".to_owned(), Some(3)));
    }
    assert_eq!(text(&output(&mut once(&den, &["k", "--", "echo", "whole"])).stdout), "whole\n");
    assert_eq!(text(&output(&mut once(&den, &["k", "--print", "--", "false"])).stdout), "whole\n");
}

#[test]
fn output_is_passed_whole_and_recorded_in_part() {
    let den = Den::new();
    let script = "i=0; while [ $i -lt 3000 ]; do echo 0123456789012345678901234567890123456789; i=$((i+1)); done";
    let program = once(&den, &["k", "--", "sh", "-c", script]);
    // Through a shell: nobody here reads while it runs.
    let mut shell = Command::new("sh");
    shell.args(["-c", "\"$0\" \"$@\" > all"]).arg(program.get_program()).args(program.get_args());
    shell.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?)))).current_dir(den.path(""));
    assert!(output(&mut shell).status.success());
    assert_eq!(std::fs::metadata(den.path("all")).expect("a file").len(), 3000 * 41);
    let mut again = start(&mut once(&den, &["k", "--print", "--", "false"]));
    let mut kept = Vec::new();
    std::io::Read::read_to_end(&mut again.child().stdout.take().expect("a pipe"), &mut kept).expect("output");
    assert_eq!(kept.len(), 60 * 1024);
    assert!(read(&den.path("all")).as_bytes().starts_with(&kept));
}

#[test]
fn what_runs_now_is_waited_for_or_skipped() {
    let den = Den::new();
    let first =
        start(&mut once(&den, &["k", "--", "sh", "-c", "echo > in; until [ -e go ]; do sleep 0.02; done; echo a"]));
    until("it runs", || den.path("in").exists());
    for (flags, code) in [(&["--skip"][..], 75), (&["--skip", "--busy-exit", "0"], 0), (&["--wait", "50ms"], 75)] {
        let done = output(once(&den, &["k"]).args(flags).args(["--", "echo", "no"]));
        assert_eq!((done.stdout.len(), done.status.code()), (0, Some(code)), "{}", text(&done.stderr));
        let said = text(&done.stderr);
        assert!(if code == 0 { said.is_empty() } else { said.contains("`k` is held by `") }, "{said}");
    }
    let second = start(&mut once(&den, &["k", "--print", "--", "echo", "no"]));
    until("it waits", || den.waiting("k") == 1);
    std::fs::write(den.path("go"), "").expect("a file");
    assert_eq!(text(&first.end().stdout), "a\n");
    assert_eq!(text(&second.end().stdout), "a\n");
}

#[test]
fn a_run_that_dies_is_taken_again_or_never() {
    let den = Den::new();
    for (flags, then) in [(&["--lease", "300ms"][..], 0), (&["--lease", "300ms", "--never-again"], 76)] {
        let _ = std::fs::remove_file(den.path("in"));
        let key = format!("k{then}");
        let mut command = once(&den, &[&key]);
        let script = "echo $$ > in.new; mv in.new in; read line < /dev/null; exec sleep 1000";
        let first = start(command.args(flags).args(["--", "sh", "-c", script]));
        until("it runs", || den.path("in").exists());
        let group =
            read(&den.path("in")).trim().parse().ok().and_then(rustix::process::Pid::from_raw).expect("a group");
        first.signal(Signal::KILL);
        drop(first);
        let done = output(once(&den, &[&key]).args(flags).args(["--", "echo", "again"]));
        assert_eq!(done.status.code(), Some(then), "{}", text(&done.stderr));
        assert!(alive(group).is_empty(), "the guard has ended it before");
        if then == 0 {
            assert_eq!(text(&done.stdout), "again\n");
        } else {
            assert!(text(&done.stderr).contains("its run died, so it is not run again"), "{}", text(&done.stderr));
            assert!(text(&done.stderr).contains(&format!("`lockkeeper once {key} --forget`")));
            assert_eq!(output(&mut once(&den, &[&key, "--forget"])).status.code(), Some(0));
            assert_eq!(text(&output(&mut once(&den, &[&key, "--", "echo", "again"])).stdout), "again\n");
        }
    }
}

#[test]
fn what_is_forgotten_is_done_again() {
    let den = Den::new();
    for _ in 0..2 {
        assert_eq!(text(&output(&mut once(&den, &["k", "--", "echo", "ran"])).stdout), "ran\n");
        let done = output(&mut once(&den, &["k", "--forget"]));
        assert_eq!((done.stdout.len(), done.status.code()), (0, Some(0)), "{}", text(&done.stderr));
    }
    // A record is behind a fence, where a plain write does not reach.
    let done = output(den.lockkeeper().args(["cell", "k", "put", "x"]));
    assert_eq!(done.status.code(), Some(64), "{}", text(&done.stderr));
    for wrong in [&["k"][..], &["k", "--forget", "--", "true"], &["k", "--forget", "--print"]] {
        assert_eq!(output(&mut once(&den, wrong)).status.code(), Some(64), "{wrong:?}");
    }
}

#[test]
fn what_is_kept_for_a_while_is_forgotten() {
    let den = Den::new();
    assert!(output(&mut once(&den, &["k", "--keep", "300ms", "--", "sh", "-c", COUNT])).status.success());
    until("it is done again", || {
        assert!(output(&mut once(&den, &["k", "--keep", "300ms", "--", "sh", "-c", COUNT])).status.success());
        read(&den.path("log")) == "did\ndid\n"
    });
}

#[test]
fn at_most_and_a_background_process() {
    let den = Den::new();
    let done = output(&mut once(&den, &["k", "--at-most", "500ms", "--", "sleep", "1000"]));
    assert_eq!(done.status.code(), Some(76), "{}", text(&done.stderr));
    let begun = std::time::Instant::now();
    let done = output(&mut once(&den, &["k", "--", "sh", "-c", "sleep 60 2>/dev/null & echo $! > left; echo out"]));
    assert_eq!((text(&done.stdout), done.status.code()), ("out\n".to_owned(), Some(0)));
    assert!(begun.elapsed() < LIMIT.min(Duration::from_secs(20)), "it ends with the command");
    let left = read(&den.path("left")).trim().parse().ok().and_then(rustix::process::Pid::from_raw).expect("a process");
    rustix::process::kill_process(left, Signal::KILL).expect("it was left alone");
}
