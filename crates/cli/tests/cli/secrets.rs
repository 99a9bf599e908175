//! Passwords: how they come in, and that they go nowhere else.

use std::fmt::Write;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex, PoisonError};

use lockkeeper::{Access, Secret};
use lockkeeper_conformance::rig::Server;

use super::servers::{program, server, url};
use super::support::{Den, children, output, start, text, until};

/// The password of the user `keeper` of the rig's `redis-acl`: a word that is found nowhere else.
const PASSWORD: &str = "swordfish-of-keeper";

fn keeper(den: &Den, server: &Server) -> Command {
    program(den, server, "keeper")
}

fn configure(den: &Den, content: &str) {
    std::fs::create_dir_all(den.path("config/lockkeeper")).expect("a folder");
    std::fs::write(den.path("config/lockkeeper/config.toml"), content).expect("a file");
}

#[test]
fn a_password_comes_by_a_variable_or_a_file() {
    let (den, Some(server)) = (Den::new(), server("redis-acl")) else { return };
    let secret = den.path("secret");
    std::fs::write(&secret, format!("{PASSWORD}\n")).expect("a file");
    configure(
        &den,
        &format!("[store.prod]\nurl = \"{}\"\npassword_file = \"{}\"\n", url(&server, "keeper"), secret.display()),
    );
    for args in [&["ls"][..], &["doctor"], &["run", "x", "--", "true"]] {
        let fine = |command: &mut Command| {
            let done = output(command.args(args));
            assert_eq!(done.status.code(), Some(0), "{args:?}: {}", text(&done.stderr));
        };
        fine(keeper(&den, &server).env("LOCKKEEPER_PASSWORD", PASSWORD));
        fine(keeper(&den, &server).env("LOCKKEEPER_PASSWORD_FILE", &secret));
        fine(den.lockkeeper().env("LOCKKEEPER_STORE", "prod"));
        // The variable goes before the file of the configuration.
        let done = output(den.lockkeeper().env("LOCKKEEPER_STORE", "prod").env("LOCKKEEPER_PASSWORD", "no").args(args));
        assert_eq!(done.status.code(), Some(69), "{args:?}");
        let done = output(keeper(&den, &server).args(args));
        assert_eq!(done.status.code(), Some(69), "{args:?}");
    }
    let done = output(program(&den, &server, "").arg("ls"));
    let said = text(&done.stderr);
    assert!(said.contains("asks for a password\n  hint: ") && said.contains("LOCKKEEPER_PASSWORD_FILE"), "{said}");
    let in_url = format!("redis://keeper:{PASSWORD}@127.0.0.1:{}", server.port());
    for args in [&["ls", "--store", &in_url][..], &["doctor", &in_url]] {
        let done = output(den.lockkeeper().args(args));
        assert_eq!(done.status.code(), Some(64));
        assert!(!text(&done.stderr).contains(PASSWORD), "{}", text(&done.stderr));
    }
}

#[test]
fn a_password_file_holds_one_line() {
    let den = Den::new();
    let fails = |content: Option<&[u8]>, what: &str| {
        let secret = den.path("secret");
        match content {
            Some(content) => std::fs::write(&secret, content).expect("a file"),
            None => drop(std::fs::remove_file(&secret)),
        }
        let mut command = den.lockkeeper();
        command.env("LOCKKEEPER_STORE", "redis://127.0.0.1:1").env("LOCKKEEPER_PASSWORD_FILE", &secret);
        let done = output(command.arg("ls"));
        let said = text(&done.stderr);
        assert_eq!(done.status.code(), Some(64), "{said}");
        assert!(said.contains(what) && said.contains("the variable LOCKKEEPER_PASSWORD_FILE names it"), "{said}");
        assert!(!said.contains("hunter2"), "{said}");
    };
    fails(None, "cannot be read");
    fails(Some(b""), "is empty");
    fails(Some(b"\n"), "is empty");
    fails(Some(b"hunter2\nhunter2\n"), "more than one line");
    fails(Some(b"hunter2\xff"), "is not UTF-8");
    fails(Some(&[b'x'; 70_000]), "is too long");
    let mut both = den.lockkeeper();
    both.env("LOCKKEEPER_PASSWORD", "hunter2").env("LOCKKEEPER_PASSWORD_FILE", "/x");
    let done = output(both.args(["ls", "--store", "redis://127.0.0.1:1"]));
    assert_eq!(done.status.code(), Some(64));
    assert!(text(&done.stderr).contains("are both set"), "{}", text(&done.stderr));
}

#[test]
fn config_says_where_a_password_comes_from_and_not_what_it_is() {
    let den = Den::new();
    let mut given = den.lockkeeper();
    given.env("LOCKKEEPER_STORE", "redis://h").env("LOCKKEEPER_PASSWORD", "hunter2");
    let said = text(&output(given.arg("config")).stdout);
    assert!(said.contains("password = (not shown)  (the variable LOCKKEEPER_PASSWORD)\n"), "{said}");
    assert!(!said.contains("hunter2"), "{said}");
    let mut file = den.lockkeeper();
    file.env("LOCKKEEPER_STORE", "redis://h").env("LOCKKEEPER_PASSWORD_FILE", "/run/secret");
    let said = text(&output(file.arg("config")).stdout);
    assert!(said.contains("password_file = /run/secret  (the variable LOCKKEEPER_PASSWORD_FILE)\n"), "{said}");
}

/// Nothing that was printed has the password.
#[track_caller]
fn clean(done: &Output) {
    for said in [text(&done.stdout), text(&done.stderr)] {
        assert!(!said.contains(PASSWORD), "{said}");
    }
}

#[test]
fn a_password_is_in_no_output_and_no_process_but_ours() {
    let (den, Some(server)) = (Den::new(), server("redis-acl")) else { return };
    let with = || {
        let mut command = keeper(&den, &server);
        command.env("LOCKKEEPER_PASSWORD", PASSWORD);
        command
    };
    for args in [&["ls"][..], &["doctor"], &["doctor", "--json"], &["config"], &["config", "--json"], &["show", "x"]] {
        clean(&output(with().args(args)));
    }
    clean(&output(with().env("LOCKKEEPER_STORE", url(&server, "nobody")).arg("ls")));
    clean(&output(with().env("LOCKKEEPER_STORE", "redis://127.0.0.1:1").arg("ls")));
    clean(&output(with().args(["run", "x", "--", "sh", "-c", "env; tr '\\0' '\\n' < /proc/$PPID/cmdline"])));

    let script = "echo > in; exec sleep 1000";
    let started = start(with().args(["run", "x", "--", "sh", "-c", script]));
    until("the command runs", || den.path("in").exists());
    let family = children(started.pid());
    assert!(family.len() >= 2, "the command and its guard: {family:?}");
    let lines = family.iter().map(|(pid, _)| *pid).chain([started.pid()]);
    for pid in lines {
        let read = |what: &str| std::fs::read(format!("/proc/{}/{what}", pid.as_raw_pid())).expect("it runs");
        let has = |bytes: &[u8]| bytes.windows(PASSWORD.len()).any(|part| part == PASSWORD.as_bytes());
        assert!(!has(&read("cmdline")), "the command line of {}", pid.as_raw_pid());
        // Ours was given it by its environment.
        assert_eq!(has(&read("environ")), pid == started.pid(), "the environment of {}", pid.as_raw_pid());
    }
    let log = std::fs::read(server.folder().join("server.log")).expect("the server's log");
    assert!(!String::from_utf8_lossy(&log).contains(PASSWORD));
    drop(started);
}

/// Writes down all that is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl Log {
    fn add(&self, fields: impl FnOnce(&mut Fields<'_>)) {
        let mut text = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        fields(&mut Fields(&mut text));
    }
}

struct Fields<'a>(&'a mut String);

impl tracing::field::Visit for Fields<'_> {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        let _ = writeln!(self.0, "{field}={value:?}");
    }
}

impl tracing::Subscriber for Log {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, span: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        self.add(|fields| span.record(fields));
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, values: &tracing::span::Record<'_>) {
        self.add(|fields| values.record(fields));
    }
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        self.add(|fields| event.record(fields));
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[test]
fn a_password_is_in_no_log_no_debug_and_no_error() {
    let Some(mut server) = server("redis-acl") else { return };
    let log = Log::default();
    // For the whole process: the watchdog has a thread of its own.
    tracing::subscriber::set_global_default(log.clone()).expect("nobody else listens");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut shown = String::new();
    runtime.block_on(async {
        let access = Access { password: Some(Secret::new(PASSWORD)) };
        let address = url(&server, "keeper");
        let keeper = lockkeeper::Keeper::connect_as(&address, &access).await.expect("a keeper");
        let store = lockkeeper::open_as(&address, &access).await.expect("a store");
        let report = lockkeeper::checkup(&address, &access).await.expect("a report");
        let hold = keeper.mutex("x").lock().await.expect("a hold");
        let _ = write!(shown, "{access:?} {keeper:?} {store:?} {report:?} {hold:?}");
        server.kill().expect("it runs");
        let errors = [
            keeper.ping().await.expect_err("it is gone"),
            lockkeeper::open_as(&address, &access).await.expect_err("it is gone"),
            lockkeeper::checkup(&address, &access).await.expect_err("it is gone"),
        ];
        server.restart().expect("it starts");
        let wrong = Access { password: Some(Secret::new(format!("{PASSWORD}-not"))) };
        let refused = lockkeeper::open_as(&address, &wrong).await.expect_err("it is wrong");
        for error in errors.iter().chain([&refused]) {
            let _ = write!(shown, "{error} {error:?} {error:#?}");
            let mut cause = std::error::Error::source(error);
            while let Some(next) = cause {
                let _ = write!(shown, "{next} {next:?}");
                cause = next.source();
            }
        }
    });
    let logged = log.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert!(!logged.is_empty(), "something was logged");
    for text in [shown, logged] {
        assert!(!text.contains(PASSWORD), "{text}");
    }
}
