//! Faults of a real server and of real connections, seen by a client that goes the way of the workers.
//!
//! Surprise: runs when servers are up or asked for, like all tests with a real server.

use std::io;
use std::process::Command;

use super::*;
use crate::arena::resp::{Reply, Resp};
use crate::history::{Event, On};
use crate::targets::Target;

/// A well server answers sooner, and a hurt one not at all; longer waits show nothing more.
const A_WHILE: Duration = Duration::from_millis(300);

/// A store of this run's own, its server's port, and the port that workers use.
fn ring(target: &str) -> Option<(tempfile::TempDir, Arena, u16, u16)> {
    servers_wanted().then(|| {
        let folder = tempfile::tempdir().unwrap();
        let arena = Arena::start(target, &[], folder.path()).unwrap();
        let by_proxy = arena.worker_url().rsplit_once(':').unwrap().1.parse().unwrap();
        let direct = arena.server_ports()[0];
        (folder, arena, direct, by_proxy)
    })
}

fn text(text: &str) -> Reply {
    Reply::Text(text.to_owned())
}

/// A client that was answered once already.
fn client(port: u16) -> Resp {
    let mut client = Resp::patient(port, A_WHILE).unwrap();
    assert_eq!(client.ask(&["PING"]).or_else(|_| client.hear_late()).unwrap(), text("PONG"));
    client.be_patient(A_WHILE);
    client
}

fn is_well(port: u16) {
    assert_eq!(Resp::to(port).unwrap().ask(&["PING"]).unwrap(), text("PONG"));
}

#[track_caller]
fn is_silent(answer: io::Result<Reply>) {
    assert!(matches!(&answer, Err(e) if e.kind() == io::ErrorKind::WouldBlock), "{answer:?}");
}

#[track_caller]
fn is_cut(answer: io::Result<Reply>) {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    let cut = |e: &io::Error| matches!(e.kind(), ConnectionReset | BrokenPipe | UnexpectedEof);
    assert!(matches!(&answer, Err(e) if cut(e)), "{answer:?}");
}

#[test]
fn connections_are_cut_and_new_ones_refused() {
    let Some((_folder, mut arena, direct, port)) = ring("redis") else { return };
    let mut old = client(port);
    while_hurt(&mut arena, &Fake::default(), &Deed::Cut { shut: AGES }, || {
        is_cut(old.ask(&["PING"]));
        is_cut(Resp::to(port).and_then(|mut client| client.ask(&["PING"])));
        is_well(direct);
    });
    is_well(port);
    let mut old = client(port);
    while_hurt(&mut arena, &Fake::default(), &Deed::Cut { shut: Duration::ZERO }, || {});
    is_cut(old.ask(&["PING"]));
    is_well(port);
}

#[test]
fn what_is_delayed_comes_late() {
    let Some((_folder, mut arena, direct, port)) = ring("redis") else { return };
    for (there, back) in [(AGES, Duration::ZERO), (Duration::ZERO, AGES)] {
        let mut asking = client(port);
        while_hurt(&mut arena, &Fake::default(), &Deed::Delay { there, back, lasts: AGES }, || {
            is_silent(asking.ask(&["INCR", "a"]));
            is_well(direct);
        });
        assert!(matches!(asking.hear_late().unwrap(), Reply::Number(_)), "it was late, and not lost");
        is_well(port);
    }
    assert_eq!(Resp::to(direct).unwrap().ask(&["GET", "a"]).unwrap(), text("2"));
}

#[test]
fn what_is_half_open_never_comes_back() {
    let Some((_folder, mut arena, direct, port)) = ring("redis") else { return };
    let mut asking = client(port);
    while_hurt(&mut arena, &Fake::default(), &Deed::HalfOpen { lasts: AGES }, || {
        is_silent(asking.ask(&["INCR", "a"]));
        is_silent(Resp::patient(port, A_WHILE).unwrap().ask(&["PING"]));
        is_well(direct);
    });
    is_cut(asking.hear_late());
    is_well(port);
    assert_eq!(Resp::to(direct).unwrap().ask(&["GET", "a"]).unwrap(), Reply::Nil, "it never arrived");
}

#[test]
fn replies_are_lost_and_their_connections_with_them() {
    let Some((_folder, mut arena, direct, port)) = ring("redis") else { return };
    let mut asking = client(port);
    while_hurt(&mut arena, &Fake::default(), &Deed::LoseReplies { lasts: AGES }, || {
        is_silent(asking.ask(&["INCR", "a"]));
        is_silent(Resp::patient(port, A_WHILE).unwrap().ask(&["PING"]));
        assert_eq!(Resp::to(direct).unwrap().ask(&["GET", "a"]).unwrap(), text("1"), "it arrived");
    });
    is_cut(asking.hear_late());
    is_well(port);
}

#[test]
fn a_killed_server_comes_back_with_what_it_kept() {
    for (target, kept) in [("redis", Reply::Nil), ("redis-durable", text("1"))] {
        let Some((_folder, mut arena, direct, port)) = ring(target) else { return };
        let mut old = client(port);
        old.ask(&["SET", "a", "1"]).unwrap();
        while_hurt(&mut arena, &Fake::default(), &Deed::KillStore { down: AGES }, || {
            assert!(Resp::to(direct).is_err());
            is_cut(old.ask(&["PING"]));
        });
        assert_eq!(Resp::to(port).unwrap().ask(&["GET", "a"]).unwrap(), kept, "{target}");
    }
}

#[test]
fn a_stopped_server_is_silent_and_goes_on() {
    let Some((_folder, mut arena, direct, port)) = ring("redis") else { return };
    let mut asking = client(port);
    while_hurt(&mut arena, &Fake::default(), &Deed::PauseStore { lasts: AGES }, || {
        is_silent(asking.ask(&["INCR", "a"]));
        is_silent(Resp::patient(direct, A_WHILE).unwrap().ask(&["PING"]));
    });
    assert_eq!(asking.hear_late().unwrap(), Reply::Number(1));
}

#[test]
fn a_wiped_server_has_nothing() {
    let Some((_folder, mut arena, _, port)) = ring("redis") else { return };
    let mut old = client(port);
    old.ask(&["SET", "a", "1"]).unwrap();
    while_hurt(&mut arena, &Fake::default(), &Deed::WipeStore { times: 3, apart: AGES }, || {});
    assert_eq!(old.ask(&["DBSIZE"]).unwrap(), Reply::Number(0));
    // Now without an end: all of them.
    let wipes = |client: &mut Resp| match client.ask(&["INFO", "commandstats"]).unwrap() {
        Reply::Text(told) => {
            told.split("cmdstat_flushall:calls=").nth(1).unwrap().split(',').next().unwrap().to_owned()
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(wipes(&mut old), "1");
    let deed = Deed::WipeStore { times: 3, apart: Duration::from_millis(1) };
    arena.battle(&Fake::default(), &|| false, &mut |_| {}).act(&deed).unwrap();
    assert_eq!(wipes(&mut old), "4");
}

/// Of a cluster the leader is hurt, and the others do without it.
#[test]
fn the_leader_of_a_cluster_is_hit_and_another_leads() {
    if !servers_wanted() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut arena = Arena::start("etcd-3", &[Nemesis::PauseStore, Nemesis::KillStore], folder.path()).unwrap();
    let workers = Fake::default();
    for deed in [Deed::PauseStore { lasts: Duration::from_secs(3) }, Deed::KillStore { down: Duration::ZERO }] {
        let mut hit = Vec::new();
        arena.battle(&workers, &|| false, &mut |fault| hit.push(fault)).act(&deed).unwrap();
        let [Fault::Hurt { on: On::Node { node }, at, done: Some(done), .. }, Fault::Healed { .. }] = hit[..] else {
            panic!("{hit:?}");
        };
        assert!(node < 3 && at < done);
        let puts = arena
            .server_ports()
            .into_iter()
            .map(|port| lockkeeper_rig::ask_etcd(port, "/v3/kv/put", r#"{"key":"YQ==","value":"MQ=="}"#).is_some());
        assert!(puts.filter(|done| *done).count() >= 2, "most members take a change again");
    }
}

/// How far the server's clock is ahead of the true one, in whole minutes.
fn minutes_ahead(port: u16) -> i64 {
    let said = Resp::to(port).unwrap().ask(&["TIME"]).unwrap().texts();
    let true_time = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
    ((said[0].parse::<f64>().unwrap() - true_time) / 60.0).round() as i64
}

#[test]
fn a_servers_clock_is_stepped_forth_and_back_and_is_true_again() {
    let Some((_folder, mut arena, direct, _)) = ring("redis-stepped") else { return };
    assert_eq!(minutes_ahead(direct), 0);
    for (steps, ahead) in [([("+40s", AGES), ("-1h", AGES)], 1), ([("+40s", A_WHILE), ("-1h", AGES)], -60)] {
        let fake = Fake::default();
        while_hurt(&mut arena, &fake, &Deed::StepStore { steps }, || {
            let end = std::time::Instant::now() + SOON;
            while minutes_ahead(direct) != ahead {
                assert!(std::time::Instant::now() < end, "{} instead of {ahead}", minutes_ahead(direct));
                thread::sleep(Duration::from_millis(10));
            }
        });
        assert_eq!(minutes_ahead(direct), 0);
    }
}

#[test]
fn a_workers_clock_is_what_its_file_says() {
    let folder = tempfile::tempdir().unwrap();
    if Target::named("sqlite").unwrap().facts().allow(Nemesis::StepClient).is_err() {
        // Said aloud, like everything that is left out.
        writeln!(io::stderr(), "\nNOT RUN: tests of a worker's clock: the library is not installed\n").unwrap();
        return;
    }
    let arena = Arena::start("sqlite", &[Nemesis::StepClient], folder.path()).unwrap();
    let (env, clocks) = (arena.worker_env(3), arena.clocks().unwrap());
    let minutes = || {
        let told = Command::new("date").arg("+%s").envs(env.clone()).output().unwrap();
        let told = String::from_utf8(told.stdout).unwrap().trim().parse::<f64>().unwrap();
        ((told - std::time::UNIX_EPOCH.elapsed().unwrap().as_secs_f64()) / 60.0).round() as i64
    };
    assert_eq!(minutes(), 0);
    for (by, behind, ahead) in [(3_600, false, 60), (3_600, true, -60), (0, false, 0)] {
        clocks.step(3, Duration::from_secs(by), behind).unwrap();
        clocks.step(4, Duration::from_secs(7_200), behind).unwrap();
        assert_eq!(minutes(), ahead);
    }
}

#[test]
fn what_the_library_leaves_for_a_killed_worker_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let Ok(arena) = Arena::start("sqlite", &[Nemesis::StepClient], folder.path()) else {
        writeln!(io::stderr(), "\nNOT RUN: tests of a worker's clock: the library is not installed\n").unwrap();
        return;
    };
    let mut command = Command::new("sleep");
    let mut process = lockkeeper_rig::Process::spawn(command.arg("600").envs(arena.worker_env(0))).unwrap();
    let (pid, end) = (process.pid(), std::time::Instant::now() + SOON);
    let left = lockkeeper_rig::FAKETIME.left_by(pid);
    while !left.iter().all(|path| path.exists()) {
        assert!(std::time::Instant::now() < end, "it shares nothing any more, so there is nothing to remove");
        thread::sleep(Duration::from_millis(5));
    }
    let began = Event::Began { at: 1, life: worker(0), pid };
    std::fs::write(folder.path().join("worker-0-0.jsonl"), serde_json::to_string(&began).unwrap() + "\n").unwrap();
    process.kill().unwrap();
    drop(arena);
    assert!(!left.iter().any(|path| path.exists()));
}
