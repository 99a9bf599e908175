//! The command is run as if there were no lock: its exit code, arguments, environment and streams are its own.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use super::support::{Den, children, output, read, start, text, until};

/// The exit code of `run x -- …`.
fn code(den: &Den, command: &[&str]) -> Option<i32> {
    output(den.run(["x", "--"]).args(command)).status.code()
}

#[test]
fn exit_codes_are_passed_on() {
    let den = Den::new();
    for wanted in [0, 1, 7, 64, 75, 255] {
        assert_eq!(code(&den, &["sh", "-c", &format!("exit {wanted}")]), Some(wanted));
    }
    assert_eq!(code(&den, &["sh", "-c", "kill -TERM $$"]), Some(143));
    assert_eq!(code(&den, &["sh", "-c", "kill -KILL $$"]), Some(137));
}

#[test]
fn what_cannot_be_started_takes_no_lock() {
    let den = Den::new();
    for (command, wanted) in [("no-such-command", 127), ("./no-such-file", 127), ("/etc/passwd", 126), ("/", 126)] {
        let output = output(&mut den.run(["x", "--", command]));
        assert_eq!(output.status.code(), Some(wanted), "{command}");
        assert!(text(&output.stderr).contains("hint: nothing was locked"), "{}", text(&output.stderr));
    }
    assert!(!den.path("locks.db").exists(), "the store was not even opened");
    // Looks executable, and is found out only by trying.
    std::fs::write(den.path("broken"), "#!/no/such/interpreter\n").expect("a file");
    output(Command::new("chmod").arg("+x").arg(den.path("broken")));
    assert_eq!(code(&den, &["./broken"]), Some(127));
}

#[test]
fn a_script_without_a_first_line_is_run_by_the_shell() {
    let den = Den::new();
    std::fs::write(den.path("script"), "exit 5\n").expect("a file");
    output(Command::new("chmod").arg("+x").arg(den.path("script")));
    assert_eq!(code(&den, &["./script"]), Some(5));
}

#[test]
fn wrong_usage_is_64() {
    let den = Den::new();
    let wrong: [&[&str]; 10] = [
        &["run"],
        &["run", "x"],
        &["run", "x", "--"],
        &["run", "x", "--no-such-flag", "--", "true"],
        &["run", "x", "--wait", "soon", "--", "true"],
        &["run", "x", "--lease", "1s", "--at-most", "1s", "--", "true"],
        &["run", "a b", "--", "true"],
        &["run", "x", "--lease", "1ms", "--", "true"],
        &["break", "x", "--now"],
        &["no-such-command"],
    ];
    for args in wrong {
        let output = output(den.lockkeeper().args(args));
        assert_eq!(output.status.code(), Some(64), "{args:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).starts_with("error: ") || args == ["run"], "{}", text(&output.stderr));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn stores_that_exclude_nobody_or_show_a_password_are_refused() {
    let den = Den::new();
    for store in ["memory:", "redis://user:secret@host/0", "nonsense", "nosuch:x"] {
        let output = output(den.lockkeeper().args(["--store", store, "ls"]));
        assert_eq!(output.status.code(), Some(64), "{store}");
        let said = text(&output.stderr);
        assert!(said.contains("hint: ") && !said.contains("secret"), "{said}");
    }
}

#[test]
fn a_store_that_cannot_be_used_is_69() {
    let den = Den::new();
    std::fs::write(den.path("locks.db"), "not a database, but somebody's letter\n".repeat(200)).expect("a file");
    let output = output(&mut den.run(["x", "--", "true"]));
    assert_eq!(output.status.code(), Some(69), "{}", text(&output.stderr));
}

#[test]
fn the_version_names_the_stores() {
    let den = Den::new();
    let output = output(den.lockkeeper().arg("--version"));
    assert!(output.status.success());
    let said = text(&output.stdout);
    assert!(said.starts_with("lockkeeper ") && said.contains("sqlite") && !said.contains("memory"), "{said}");
}

#[test]
fn without_a_store_the_users_own_file_is_used() {
    let den = Den::new();
    let mut command = den.run(["x", "--", "true"]);
    let done = output(command.env_remove("LOCKKEEPER_STORE").env("XDG_STATE_HOME", den.path("state?%")));
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert!(den.path("state?%/lockkeeper/locks.db").exists());
}

#[test]
fn arguments_arrive_byte_for_byte() {
    let den = Den::new();
    let odd = OsStr::from_bytes(b"not \xff utf-8\n");
    let mut command = den.run(["x", "--", "printf", "%s|"]);
    let output = output(command.args(["", "a b", "--", "--help", "-n", "'\"$HOME*"]).arg(odd));
    assert_eq!(output.stdout, b"|a b|--|--help|-n|'\"$HOME*|not \xff utf-8\n|");
}

#[test]
fn the_environment_tells_the_hold_and_no_secret() {
    let den = Den::new();
    let mut command = den.run(["x", "--", "env"]);
    command.env("LOCKKEEPER_PASSWORD", "secret").env("LOCKKEEPER_PASSWORD_FILE", "/secret").env("OTHER", "kept");
    let said = text(&output(&mut command).stdout);
    let value = |name: &str| said.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
    assert_eq!(value("LOCKKEEPER_NAME"), Some("x"));
    assert!(value("LOCKKEEPER_TOKEN").is_some_and(|token| token.parse::<u64>().is_ok()));
    assert_eq!(value("OTHER"), Some("kept"));
    assert!(!said.contains("secret"), "{said}");
}

#[test]
fn streams_are_the_commands_own() {
    let den = Den::new();
    let mut command = den.run(["x", "--", "sh", "-c", "tr a-z A-Z; echo talk >&2"]);
    let mut started = start(command.stdin(Stdio::piped()));
    started.child().stdin.take().expect("a pipe").write_all(b"hello").expect("a reader");
    let done = started.end();
    assert_eq!((text(&done.stdout), text(&done.stderr)), ("HELLO".to_owned(), "talk\n".to_owned()));
}

#[test]
fn a_pipeline_ends_with_the_command() {
    let den = Den::new();
    // The background process holds the lock's group but not the pipe, and an extra descriptor of the shell's must
    // not be kept open by the guard.
    let script = "exec 3>&1; \"$LK\" run x -- sh -c 'sleep 20 >/dev/null 2>&1 3>&- & echo $! > left; echo out' | cat";
    let mut command = Command::new("sh");
    command.args(["-c", script]).env("LK", env!("CARGO_BIN_EXE_lockkeeper")).env("LOCKKEEPER_STORE", den.store());
    let done = output(command.current_dir(den.path("")).stdout(Stdio::piped()).stderr(Stdio::piped()));
    assert_eq!(text(&done.stdout), "out\n", "{}", text(&done.stderr));
    // Left alone, as documented; and ended here.
    let left = rustix::process::Pid::from_raw(read(&den.path("left")).trim().parse().expect("a number"));
    rustix::process::kill_process(left.expect("a process"), Signal::KILL).expect("it was left alone");
}

#[test]
fn the_command_inherits_a_clean_slate() {
    let den = Den::new();
    let script = "grep -E 'Sig(Blk|Ign)' /proc/self/status; ls /proc/self/fd | tr '\\n' ' '";
    let plain = output(Command::new("sh").args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::piped()));
    let under = output(den.run(["x", "--", "sh", "-c", script]).stdin(Stdio::null()));
    assert_eq!(text(&under.stdout), text(&plain.stdout));
}

#[test]
fn a_writer_whose_reader_left_ends_of_sigpipe() {
    let den = Den::new();
    let mut started = start(&mut den.run(["x", "--", "yes"]));
    let mut some = [0; 64];
    started.child().stdout.take().expect("a pipe").read_exact(&mut some).expect("some output");
    assert_eq!(started.end().status.code(), Some(128 + 13));
}

#[test]
fn what_nohup_ignores_stays_ignored() {
    let den = Den::new();
    let mut command = Command::new("sh");
    let script = "trap '' HUP; exec \"$LK\" run x -- sh -c 'echo $$ > in; read line; echo $line'";
    command.args(["-c", script]).env("LK", env!("CARGO_BIN_EXE_lockkeeper")).env("LOCKKEEPER_STORE", den.store());
    command.current_dir(den.path("")).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
    let mut started = start(&mut command);
    until("it runs", || den.path("in").exists());
    started.signal(Signal::HUP);
    started.child().stdin.take().expect("a pipe").write_all(b"still here\n").expect("a reader");
    let done = started.end();
    assert_eq!((text(&done.stdout), done.status.code()), ("still here\n".to_owned(), Some(0)));
}

#[test]
fn signals_are_passed_and_the_command_decides() {
    let den = Den::new();
    for (signal, name) in [
        (Signal::TERM, "TERM"),
        (Signal::HUP, "HUP"),
        (Signal::INT, "INT"),
        (Signal::QUIT, "QUIT"),
        (Signal::USR1, "USR1"),
        (Signal::USR2, "USR2"),
    ] {
        let script = format!("trap 'echo got-{name}; exit 9' {name}; echo $$ > in-x; read line");
        let mut command = den.run(["x", "--", "sh", "-c", &script]);
        let _ = std::fs::remove_file(den.path("in-x"));
        let started = start(command.stdin(Stdio::piped()));
        until("it runs", || den.path("in-x").exists());
        started.signal(signal);
        let done = started.end();
        assert_eq!((text(&done.stdout), done.status.code()), (format!("got-{name}\n"), Some(9)));
    }
}

#[test]
fn an_untrapped_signal_ends_both() {
    let den = Den::new();
    let holder = den.holder("x", &[], "read line < /dev/null; exec sleep 1000");
    holder.signal(Signal::TERM);
    assert_eq!(holder.end().status.code(), Some(143));
    assert_eq!(den.show("x")["state"], "free");
}

#[test]
fn the_guard_is_elsewhere_and_is_replaced() {
    let den = Den::new();
    let holder = den.holder("x", &[], "read line < /dev/null; exec sleep 1000");
    let guard = || children(holder.pid()).into_iter().find(|(_, line)| line.contains("__guard")).map(|(pid, _)| pid);
    let first = guard().expect("a guard");
    assert_eq!(rustix::process::getpgid(Some(first)), Ok(first), "a group of its own");
    // What can be blocked does not end it.
    rustix::process::kill_process(first, Signal::TERM).expect("it is there");
    rustix::process::kill_process(first, Signal::KILL).expect("it is there");
    until("another takes its post", || guard().is_some_and(|next| next != first));
    holder.signal(Signal::TERM);
    assert_eq!(holder.end().status.code(), Some(143));
}
