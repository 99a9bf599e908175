//! The rig tried on itself: servers start, answer and are gone, whatever happens to whoever started them.
//!
//! The surprise: two tests start this very test program again, as an owner that is then killed. What needs a real server
//! runs when servers are up or asked for (`cargo xtask test`), and otherwise says aloud that it did not.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Once;
use std::time::{Duration, Instant};
use std::{env, fs, io, thread};

use super::identity::poll;
use super::*;

pub(super) const SOON: Duration = Duration::from_secs(10);
/// Tells this program, started again, what to own, and where to write down which process it is.
const OWN: &str = "LOCKKEEPER_RIG_TEST_OWN";

mod cluster;
mod etcd;
mod talk;
mod variants;

pub(super) use talk::Talk;

/// A redis of our own, or nothing when nobody asked for servers.
pub(super) fn redis() -> Option<Server> {
    variant("redis")
}

/// A server of our own, or nothing when nobody asked for servers.
fn variant(name: &str) -> Option<Server> {
    asked_for().then(|| Server::named(name).expect("the server starts"))
}

/// Whether servers are to be started; says aloud if not.
fn asked_for() -> bool {
    static ONCE: Once = Once::new();
    if !wanted() {
        // To the stream itself: the test harness swallows `eprintln!`.
        let line = "\nNOT RUN: the rig's tests with real servers; `cargo xtask test` runs them\n";
        ONCE.call_once(|| drop(writeln!(io::stderr(), "{line}")));
        return false;
    }
    true
}

fn ping(port: u16) -> io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_millis(300)))?;
    stream.write_all(b"PING\r\n")?;
    let mut answer = [0; 7];
    stream.read_exact(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn assert_gone(identity: Identity, folder: &Path) {
    assert!(identity.wait_gone(SOON), "pid {} still runs", identity.pid);
    assert!(poll(SOON, || (!folder.exists()).then_some(())).is_some(), "{} is still there", folder.display());
}

#[test]
fn a_server_starts_answers_and_stops() {
    let Some(server) = redis() else { return };
    let (identity, folder, port) = (server.identity().unwrap(), server.folder().to_path_buf(), server.port());
    assert_eq!(ping(port).unwrap(), "+PONG\r\n");
    assert_eq!(server.url(), format!("redis://127.0.0.1:{port}"));
    assert!(server.entry().unwrap().is_ready() && server.entry().unwrap().version.contains('.'));
    server.stop().unwrap();
    assert_gone(identity, &folder);
    assert!(ping(port).is_err());
}

#[test]
fn two_servers_at_once_have_different_ports() {
    let (Some(one), Some(two)) = (redis(), redis()) else { return };
    assert_ne!(one.port(), two.port());
    assert_ne!(one.folder(), two.folder());
    assert!(ping(one.port()).is_ok() && ping(two.port()).is_ok());
}

#[test]
fn a_panic_takes_the_server_down() {
    let Some(server) = redis() else { return };
    let (identity, folder) = (server.identity().unwrap(), server.folder().to_path_buf());
    let panicked = thread::spawn(move || {
        assert!(server.port() == 0, "on purpose");
    });
    assert!(panicked.join().is_err());
    assert_gone(identity, &folder);
}

#[test]
fn a_stopped_server_is_silent_and_goes_on() {
    let Some(mut server) = redis() else { return };
    server.pause().unwrap();
    assert!(ping(server.port()).is_err());
    server.resume().unwrap();
    assert!(poll(SOON, || ping(server.port()).ok()).is_some());
    server.pause().unwrap();
    let (identity, folder) = (server.identity().unwrap(), server.folder().to_path_buf());
    drop(server); // ends, although it is stopped
    assert_gone(identity, &folder);
}

#[test]
fn a_killed_server_comes_back_at_the_same_place() {
    let Some(mut server) = redis() else { return };
    let (port, first) = (server.port(), server.identity().unwrap());
    server.kill().unwrap();
    assert!(!first.is_alive() && ping(port).is_err() && server.pause().is_err());
    server.restart().unwrap();
    assert_eq!(server.port(), port);
    assert_ne!(server.identity().unwrap(), first);
    assert!(ping(port).is_ok() && server.restart().is_err());
}

/// Not a test by itself: what this program does when another test starts it as an owner.
#[test]
fn owner() {
    let Some((what, note)) = env::var(OWN).ok().and_then(|own| own.split_once('=').map(|(a, b)| (a.into(), b.into())))
    else {
        return;
    };
    let (what, note): (String, PathBuf) = (what, note);
    let (mut sleeper, mut cluster) = (None, None);
    let owned: Vec<(Identity, PathBuf)> = if what != "sleeper" {
        let cluster = cluster.insert(Cluster::named(&what).unwrap());
        let members = cluster.members().iter();
        members.map(|server| (server.identity().unwrap(), server.folder().to_path_buf())).collect()
    } else {
        let sleeper = sleeper.insert(Process::spawn(Command::new("sleep").arg("600")).unwrap());
        vec![(sleeper.identity(), PathBuf::new())]
    };
    let lines = owned.iter().map(|(it, folder)| format!("{} {} {}\n", it.pid, it.start, folder.display()));
    fs::write(note.with_extension("part"), lines.collect::<String>()).unwrap();
    fs::rename(note.with_extension("part"), &note).unwrap();
    thread::sleep(Duration::from_secs(60));
}

/// Starts this program as an owner, kills it, and gives the processes it owned and their folders.
fn killed_owner(what: &str) -> Vec<(Identity, PathBuf)> {
    let note = env::temp_dir().join(format!("lockkeeper-rig-{what}-{}", std::process::id()));
    let _ = fs::remove_file(&note);
    let test = module_path!().split_once("::").unwrap().1.to_string() + "::owner";
    let mut command = Command::new(env::current_exe().unwrap());
    command.args([&test, "--exact", "--nocapture"]).env(OWN, format!("{what}={}", note.display()));
    let mut owner = Process::spawn(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())).unwrap();
    let text = poll(Duration::from_secs(60), || fs::read_to_string(&note).ok()).expect("the owner says what it owns");
    let _ = fs::remove_file(&note);
    let owned = text.lines().map(|line| {
        let words: Vec<&str> = line.splitn(3, ' ').collect();
        let identity = Identity { pid: words[0].parse().unwrap(), start: words[1].parse().unwrap() };
        assert!(identity.is_alive());
        (identity, PathBuf::from(words[2]))
    });
    let owned = owned.collect();
    assert_eq!(owner.kill().unwrap().signal(), Some(9));
    owned
}

#[test]
fn a_killed_owner_takes_its_process_along() {
    let owned = killed_owner("sleeper");
    assert!(owned.len() == 1 && owned[0].0.wait_gone(SOON));
}

#[test]
fn a_killed_owner_takes_its_server_and_the_folder_along() {
    if !asked_for() {
        return;
    }
    for (identity, folder) in killed_owner("redis") {
        assert_gone(identity, &folder);
    }
}

/// A server that is a shell script, for what can go wrong without any real one.
const fn script(text: &'static [&'static str], starts_within: Duration) -> Spec {
    Spec {
        name: "script",
        variant_of: None,
        program: "sh",
        args: text,
        files: &[("conf/a.txt", "listen {port} peer {port2}")],
        env: &[("FOLDER", "{dir}")],
        prepare: &[&["sh", "-c", "echo prepared $FOLDER; cp conf/a.txt {dir}/b.txt"]],
        ready: Ready { say: b"", hear: b"hello" },
        stop: Signal::TERM,
        starts_within,
        url: "script:{port}",
        version: &["-c", "echo script v1.2.3-x"],
        package: "dash",
        library: None,
        beside: &[],
        members: &[],
        leader: None,
    }
}

static BREAKS: Spec = script(&["-c", "cat b.txt; echo boom on {port} >&2; exit 3"], SOON);
static HANGS: Spec = script(&["-c", "echo started; exec sleep 600"], Duration::from_millis(300));

/// A folder of this test's own; the servers inside must leave it empty.
fn parent(name: &str) -> PathBuf {
    env::temp_dir().join(format!("lockkeeper-rig-test-{name}-{}", std::process::id()))
}

#[test]
fn a_server_that_breaks_shows_its_log() {
    let parent = parent("breaks");
    let said = Server::start(&BREAKS, &parent).unwrap_err().to_string();
    assert!(said.contains("`script` ended instead of starting (exit status: 3)"), "{said}");
    assert!(said.contains("boom on ") && said.contains("listen ") && !said.contains('{'), "{said}");
    assert!(said.contains(&format!("prepared {}", parent.display())), "{said}");
    fs::remove_dir(&parent).expect("nothing is left behind");
}

#[test]
fn a_server_that_hangs_is_given_up() {
    let (parent, began) = (parent("hangs"), Instant::now());
    let said = Server::start(&HANGS, &parent).unwrap_err().to_string();
    assert!(said.contains("was not ready within") && said.contains("started"), "{said}");
    assert!(began.elapsed() < SOON);
    fs::remove_dir(&parent).expect("nothing is left behind");
}

#[test]
fn what_is_not_installed_names_the_command_to_type() {
    let spec = Spec { program: "lockkeeper-no-such-program", ..script(&[], SOON) };
    let said = spec.find().unwrap_err().to_string();
    assert!(said.contains("hint: `cargo xtask setup`"), "{said}");
    assert!(Server::named("no-such-server").is_err());
    assert_eq!(BREAKS.installed_version().as_deref(), Some("1.2.3"));
}

#[test]
fn a_process_can_be_stopped_continued_and_killed() {
    let mut process = Process::spawn(Command::new("sleep").arg("600")).unwrap();
    let identity = process.identity();
    process.pause().unwrap();
    assert!(identity.is_paused() && identity.is_alive());
    assert!(process.wait(Duration::from_millis(20)).is_err());
    process.resume().unwrap();
    assert!(!identity.is_paused());
    assert_eq!(process.kill().unwrap().signal(), Some(9));
    assert!(!identity.is_alive() && process.pause().is_err());
    assert_eq!(process.kill().unwrap().signal(), Some(9), "killing it again is no news");
}

#[test]
fn a_dropped_process_is_gone_with_its_children() {
    let mut command = Command::new("sh");
    command.args(["-c", "sleep 600 & echo $!; wait"]).stdout(Stdio::piped());
    let mut process = Process::spawn(&mut command).unwrap();
    let identity = process.identity();
    let mut line = String::new();
    io::BufRead::read_line(&mut io::BufReader::new(process.stdout().unwrap()), &mut line).unwrap();
    let child = Identity::of(line.trim().parse().unwrap()).unwrap();
    drop(process);
    assert!(!identity.is_alive() && child.wait_gone(SOON));
}

#[test]
fn a_process_that_ends_says_how() {
    let mut process = Process::spawn(Command::new("sh").args(["-c", "exit 7"])).unwrap();
    assert_eq!(process.wait(SOON).unwrap().code(), Some(7));
    assert!(Process::spawn(&mut Command::new("lockkeeper-no-such-program")).is_err());
}

#[test]
fn a_zombie_is_gone() {
    let mut child = Command::new("true").spawn().unwrap();
    let identity = Identity::of_child(child.id()).unwrap();
    assert!(identity.wait_gone(SOON), "although nobody has reaped it");
    assert!(!identity.signal(Signal::TERM));
    child.wait().unwrap();
}

#[test]
fn a_port_is_known_by_its_owner() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    assert!(ports::is_owned_by(port, std::process::id()));
    let mut other = Process::spawn(Command::new("sleep").arg("600")).unwrap();
    assert!(!ports::is_owned_by(port, other.pid()));
    other.kill().unwrap();
}

#[test]
fn the_list_of_servers_is_read_back_as_written() {
    let rig = parent("list");
    assert_eq!(entries(&rig).unwrap(), []);
    let entry = Entry {
        name: "redis".to_string(),
        url: "redis://127.0.0.1:1".to_string(),
        members: vec![Member {
            port: 1,
            identity: Identity { pid: std::process::id(), start: 1 },
            folder: PathBuf::from("/tmp/elsewhere"),
        }],
        version: "7.0.15".to_string(),
    };
    remember(&rig, std::slice::from_ref(&entry)).unwrap();
    assert_eq!(entries(&rig).unwrap().first(), Some(&entry));
    assert!(!entry.is_ready(), "our pid, but not our start time");
    assert!(entry.stop(&rig), "somebody else's process is not touched");
    fs::write(rig.join("servers.json"), "{}").unwrap();
    assert!(entries(&rig).unwrap_err().to_string().contains("hint:"));
    forget(&rig);
    fs::remove_dir(&rig).expect("nothing is left behind");
}
