//! Under a real terminal with a job-control shell: what a user types has the same effect as without us.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::support::{Den, LIMIT, Started, alive, children, read, session, start, state, until};

const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";
const CTRL_Z: &str = "\x1a";

/// An interactive `bash` on a terminal of its own.
struct Shell {
    keyboard: File,
    screen: Arc<(Mutex<String>, Condvar)>,
    seen: usize,
    bash: Started,
}

impl Shell {
    fn new(den: &Den) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a pty");
        grantpt(&master).and_then(|()| unlockpt(&master)).expect("a pty");
        let name = ptsname(&master, Vec::new()).expect("its name");
        let slave = File::options().read(true).write(true).open(name.to_str().expect("its name")).expect("its end");
        let same = || Stdio::from(slave.try_clone().expect("a second handle"));
        // `setsid --ctty` makes the terminal the controlling one of a new session, as a login does.
        let mut command = Command::new("setsid");
        command.args(["--ctty", "bash", "--norc", "--noprofile", "--noediting", "-i"]);
        let program = den.lockkeeper();
        command.env_clear().envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("PATH", std::env::var_os("PATH").expect("a PATH")).env("PS1", "ready> ").env("TERM", "xterm");
        command.env("LK", env!("CARGO_BIN_EXE_lockkeeper")).current_dir(den.path(""));
        command.stdin(same()).stdout(same()).stderr(same());
        let bash = start(&mut command);
        drop((command, slave));
        let keyboard = File::from(master);
        let screen: Arc<(Mutex<String>, Condvar)> = Arc::default();
        read_screen(keyboard.try_clone().expect("a second handle"), screen.clone());
        let mut shell = Self { keyboard, screen, seen: 0, bash };
        shell.expect("ready> ");
        shell
    }

    fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("the terminal is there");
    }

    fn line(&mut self, line: &str) {
        self.press(&format!("{line}\n"));
    }

    /// Waits until the screen shows this after what was expected before.
    #[track_caller]
    fn expect(&mut self, what: &str) {
        let (screen, changed) = &*self.screen;
        let mut text = screen.lock().expect("the reader is well");
        let begun = Instant::now();
        loop {
            if let Some(at) = text[self.seen..].find(what) {
                self.seen += at + what.len();
                return;
            }
            if begun.elapsed() > LIMIT {
                let shown: String = text[self.seen..].chars().take(4_000).collect();
                drop(text);
                panic!("`{what}` did not come; since what was expected last the screen shows:\n{shown}");
            }
            text = changed.wait_timeout(text, Duration::from_millis(100)).expect("the reader is well").0;
        }
    }

    /// The exit code of the last command.
    #[track_caller]
    fn expect_code(&mut self, code: i32) {
        // The quotes keep the typed line, which is echoed, from looking like the answer.
        self.line("echo 'code'-$?.");
        self.expect(&format!("code-{code}."));
        self.expect("ready> ");
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // Everything of the shell's session, whatever a failed test left it doing; the guards end by themselves.
        for pid in session(self.bash.pid()) {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
}

fn read_screen(mut from: File, screen: Arc<(Mutex<String>, Condvar)>) {
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            let (text, changed) = &*screen;
            text.lock().expect("the test is well").push_str(&String::from_utf8_lossy(&bytes[..count]));
            changed.notify_all();
        }
    });
}

/// The process id that a command wrote into a file.
fn pid(den: &Den, file: &str) -> Pid {
    Pid::from_raw(read(&den.path(file)).trim().parse().expect("a number")).expect("a process")
}

/// The same steps without us and with us.
///
/// The commands wait in `read`, which is the shell itself. A key pressed while it starts another program may meet
/// a process that is not that program yet, and then a plain shell hangs as well.
const BOTH: [&str; 2] = ["", "$LK run x -- "];

#[test]
fn an_interactive_shell_works_under_a_lock() {
    let den = Den::new();
    let mut shell = Shell::new(&den);
    shell.line("$LK run x -- env PS1='inner> ' bash --norc --noediting -i");
    shell.expect("inner> ");
    shell.line("echo 'name'-$LOCKKEEPER_NAME.");
    shell.expect("name-x.");
    shell.expect("inner> ");
    shell.line("echo $$ > inner");
    shell.expect("inner> ");
    shell.line("sleep 1000");
    let inner = pid(&den, "inner");
    until("sleep runs", || children(inner).iter().any(|(_, line)| line.starts_with("sleep")));
    shell.press(CTRL_C);
    shell.expect("inner> ");
    shell.line("echo 'inner'-$?.");
    shell.expect("inner-130.");
    shell.line("exit 3");
    shell.expect("ready> ");
    shell.expect_code(3);
}

#[test]
fn ctrl_c_ends_the_command_and_the_list_it_is_in() {
    for with in BOTH {
        let den = Den::new();
        let mut shell = Shell::new(&den);
        shell.line(&format!("for i in 1 2 3; do {with}sh -c 'echo \"be\"gun; exec sleep 1000'; done"));
        shell.expect("begun");
        shell.press(CTRL_C);
        shell.expect("ready> ");
        shell.expect_code(130);
    }
}

#[test]
fn ctrl_c_can_be_handled_by_the_command() {
    for with in BOTH {
        let den = Den::new();
        let mut shell = Shell::new(&den);
        shell.line(&format!("{with}sh -c 'trap \"echo caught; exit 9\" INT; echo \"be\"gun; read line'"));
        shell.expect("begun");
        shell.press(CTRL_C);
        shell.expect("caught");
        shell.expect("ready> ");
        shell.expect_code(9);
    }
}

#[test]
fn ctrl_z_stops_and_fg_resumes() {
    for with in BOTH {
        let den = Den::new();
        let mut shell = Shell::new(&den);
        shell.line(&format!("{with}sh -c 'echo $$ > pid; echo \"be\"gun; read line; echo got-$line; exit 4'"));
        shell.expect("begun");
        let command = pid(&den, "pid");
        for _ in 0..3 {
            shell.press(CTRL_Z);
            shell.expect("Stopped");
            shell.expect("ready> ");
            shell.line("jobs");
            shell.expect("Stopped");
            shell.expect("ready> ");
            shell.line("fg");
            shell.expect("read line");
            // A key that comes between the terminal and the signal that wakes is lost, with and without us.
            until("it goes on", || state(command) == Some('S'));
        }
        shell.line("hello");
        shell.expect("got-hello");
        shell.expect("ready> ");
        shell.expect_code(4);
    }
}

#[test]
fn a_background_command_that_wants_the_terminal_gets_it_with_fg() {
    for with in BOTH {
        let den = Den::new();
        let mut shell = Shell::new(&den);
        shell.line(&format!("{with}cat &"));
        shell.expect("ready> ");
        // The shell reports it before a prompt, so it is asked for one until it does.
        loop {
            shell.line("jobs; echo 'asked'.");
            shell.expect("asked.");
            let (text, _) = &*shell.screen;
            if text.lock().expect("the reader is well").contains("Stopped") {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        shell.expect("ready> ");
        shell.line("fg");
        shell.expect("cat");
        shell.line("typed");
        // Once as echo, once from cat.
        shell.expect("typed");
        shell.expect("typed");
        shell.press(CTRL_D);
        shell.expect("ready> ");
        shell.expect_code(0);
    }
}

#[test]
fn bg_lets_it_run_on() {
    for with in BOTH {
        let den = Den::new();
        let mut shell = Shell::new(&den);
        shell.line(&format!("mkfifo go; {with}sh -c 'echo \"be\"gun; read line < go; echo $line > went'"));
        shell.expect("begun");
        shell.press(CTRL_Z);
        shell.expect("Stopped");
        shell.expect("ready> ");
        shell.line("bg");
        shell.expect("ready> ");
        std::fs::write(den.path("go"), "now\n").expect("the pipe has a reader");
        until("it ends in the background", || den.path("went").exists());
        shell.line("wait");
        shell.expect("ready> ");
        shell.expect_code(0);
    }
}

#[test]
fn in_a_pipeline_the_terminal_goes_to_who_asks_for_it() {
    for with in BOTH {
        let den = Den::new();
        let mut shell = Shell::new(&den);
        shell.line(&format!("{with}sh -c 'echo \"be\"gun; read line < /dev/tty; echo got-$line' | cat"));
        shell.expect("begun");
        shell.line("hello");
        shell.expect("got-hello");
        shell.expect("ready> ");
        // And the other way round: here it is the reader of the pipe who asks.
        shell.line(&format!("{with}echo 1 | sh -c 'cat; read line < /dev/tty; echo then-$line'"));
        shell.line("again");
        shell.expect("then-again");
        shell.expect("ready> ");
        shell.expect_code(0);
    }
}

#[test]
fn ctrl_z_in_a_pipeline_stops_all_of_it() {
    for with in BOTH {
        let den = Den::new();
        let mut shell = Shell::new(&den);
        shell.line(&format!("{with}sh -c 'echo \"be\"gun; read line; echo got-$line' | cat"));
        shell.expect("begun");
        shell.press(CTRL_Z);
        shell.expect("Stopped");
        shell.expect("ready> ");
        shell.line("fg");
        shell.expect("| cat");
        shell.line("hello");
        shell.expect("got-hello");
        shell.expect("ready> ");
        shell.expect_code(0);
    }
}

#[test]
fn a_killed_command_does_not_leave_the_terminal_without_echo() {
    let den = Den::new();
    let mut shell = Shell::new(&den);
    shell.line("$LK run x --at-most 500ms -- sh -c 'stty -echo; echo \"be\"gun; trap \"\" TERM; sleep 5; sleep 5'");
    shell.expect("begun");
    shell.expect("ready> ");
    shell.expect_code(76);
    shell.line("stty -a | tr ' ' '\\n' | grep -x -e -echo -e echo");
    shell.expect("\necho");
}

#[test]
fn stopped_past_its_lease_it_is_lost() {
    let den = Den::new();
    let mut shell = Shell::new(&den);
    shell.line("$LK run x --lease 1s -- sh -c 'echo $$ > pid; echo \"be\"gun; read line'");
    shell.expect("begun");
    shell.press(CTRL_Z);
    shell.expect("stays taken for");
    shell.expect("ready> ");
    let group = pid(&den, "pid");
    until("the guard ends it", || alive(group).is_empty());
    shell.line("fg");
    shell.expect("was lost while its command was running");
    shell.expect("ready> ");
    shell.expect_code(76);
}

#[test]
fn watch_redraws_its_table_in_place() {
    let den = Den::new();
    let mut shell = Shell::new(&den);
    shell.line("$LK watch");
    shell.expect("nobody holds or waits");
    let holder = den.holder("x", &["--label", "one"], "read line < /dev/null; exec sleep 1000");
    shell.expect("\x1b[1A\r\x1b[JNAME");
    shell.expect("(one)");
    // The times tick, so it is drawn again: two lines up.
    shell.expect("\x1b[2A\r\x1b[JNAME");
    shell.press(CTRL_C);
    shell.expect("ready> ");
    shell.expect_code(130);
    drop(holder);
}

#[test]
fn keys_while_waiting_stop_it_or_leave_the_line() {
    let den = Den::new();
    let _holder = den.holder("x", &[], "read line < /dev/null; exec sleep 1000");
    let mut shell = Shell::new(&den);
    shell.line("for i in 1 2 3; do $LK run x -- true; done");
    shell.expect("waiting for `x`, 1st in line: held by `");
    shell.expect("(for ");
    shell.press(CTRL_C);
    shell.expect("ready> ");
    shell.expect_code(130);
    assert_eq!(den.waiting("x"), 0, "it has left the line, and the loop has ended");
    shell.line("$LK run x -- true");
    shell.expect("waiting for `x`");
    shell.press(CTRL_Z);
    shell.expect("Stopped");
    shell.expect("ready> ");
    shell.line("fg");
    shell.expect("waiting for `x`");
    shell.press(CTRL_C);
    shell.expect("ready> ");
    shell.expect_code(130);
}
