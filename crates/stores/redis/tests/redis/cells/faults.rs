//! What is not ours, who may not, and callers that give up: nothing is touched that should not be, and nothing is left.

use std::time::Duration;

use lockkeeper_conformance::rig::Server;
use lockkeeper_core::access::Secret;
use lockkeeper_core::cell::{CellAction, CellOp, CellReply};
use lockkeeper_core::store::Store;
use lockkeeper_core::{Effect, ErrorKind, Token};
use lockkeeper_redis::{Cells, Options, Redis};

use super::{key, name, open, options, port, raw};

const BOTH: [Cells; 2] = [Cells::Script, Cells::Watch];

fn every_action() -> Vec<CellAction> {
    let (token, per) = (Token::from_u64(7), Duration::from_secs(1));
    vec![
        CellAction::Put { value: b"x".to_vec(), if_version: None },
        CellAction::Put { value: b"x".to_vec(), if_version: Some(0) },
        CellAction::Remove { if_version: None },
        CellAction::Add { by: 1 },
        CellAction::Take { by: 0, floor: 0 },
        CellAction::Max { at_least: 1 },
        CellAction::Window { take: 1, limit: 1, per },
        CellAction::Gcra { take: 1, limit: 1, per },
        CellAction::FenceEnter { token, shared: true },
        CellAction::FenceEnter { token, shared: false },
        CellAction::FencedPut { token, value: None },
    ]
}

type Fields = &'static [(&'static str, &'static str)];

/// A good cell, and one field that spoils it (or, without a value, is missing).
const SPOILT: [(Fields, &str, Option<&str>); 23] = {
    const BYTES: Fields = &[("kind", "bytes"), ("version", "5"), ("touched", "9"), ("value", "v")];
    const NUMBER: Fields = &[("kind", "number"), ("version", "5"), ("touched", "9"), ("value", "1")];
    const WINDOW: Fields =
        &[("kind", "window"), ("version", "5"), ("touched", "9"), ("value", "1"), ("span", "3"), ("keep", "99")];
    const GONE: Fields = &[("kind", "gone"), ("version", "5")];
    [
        (BYTES, "kind", None),
        (BYTES, "kind", Some("list")),
        (BYTES, "kind", Some("")),
        (BYTES, "version", None),
        (BYTES, "version", Some("0")),
        (BYTES, "version", Some("05")),
        (BYTES, "version", Some("9000000000000000")),
        (BYTES, "touched", None),
        (BYTES, "touched", Some("-1")),
        (BYTES, "touched", Some("1e3")),
        (BYTES, "value", None),
        (BYTES, "keep", Some("soon")),
        (BYTES, "read", Some("7")),
        (BYTES, "write", Some("18446744073709551616")),
        (BYTES, "write", Some("0000000000000000007x")),
        (NUMBER, "value", None),
        (NUMBER, "value", Some("-0")),
        (NUMBER, "value", Some("007")),
        (NUMBER, "value", Some("9223372036854775808")),
        (NUMBER, "value", Some("-9223372036854775809")),
        (WINDOW, "value", Some("many")),
        (WINDOW, "span", None),
        (GONE, "version", Some("x")),
    ]
};

#[tokio::test]
async fn what_is_not_a_cell_is_foreign_and_stays_as_it_is() {
    let Some(port) = port() else { return };
    let mut raw = raw(port).await;
    let mut keys = Vec::new();
    for (good, field, value) in SPOILT {
        let cell = name("spoilt");
        let mut plant = redis::cmd("HSET");
        plant.arg(key(&cell));
        good.iter().filter(|(name, _)| *name != field).for_each(|(name, value)| _ = plant.arg(name).arg(value));
        if let Some(value) = value {
            plant.arg(field).arg(value);
        }
        plant.exec_async(&mut raw).await.expect("an answer");
        keys.push((cell, format!("{field} = {value:?} of {good:?}")));
    }
    for (command, what) in [("SET", "a string"), ("RPUSH", "a list"), ("SADD", "a set")] {
        let cell = name("other");
        redis::cmd(command).arg(key(&cell)).arg("x").exec_async(&mut raw).await.expect("an answer");
        keys.push((cell, what.to_owned()));
    }
    for cells in BOTH {
        let store = open(port, cells).await;
        for (cell, what) in &keys {
            let mut dump = redis::cmd("DUMP");
            dump.arg(key(cell));
            let before: Vec<u8> = dump.query_async(&mut raw).await.expect("an answer");
            let read = store.read(cell).await.expect_err(what);
            assert_eq!((read.kind(), read.effect()), (ErrorKind::Foreign, Effect::None), "{what}");
            for action in every_action() {
                let error = store.update(cell, &CellOp::new(action.clone())).await.expect_err(what);
                assert_eq!((error.kind(), error.effect()), (ErrorKind::Foreign, Effect::None), "{what} {action:?}");
            }
            let after: Vec<u8> = dump.query_async(&mut raw).await.expect("an answer");
            assert_eq!(after, before, "{what}");
        }
    }
}

/// A user that may not run scripts changes cells by `WATCH`, and is told of it.
#[tokio::test]
async fn without_scripts_there_is_watch() {
    let Some(_) = port() else { return };
    // The users of the shared one are not ours to change.
    let server = Server::named("redis").expect("a server");
    let mut raw = raw(server.port()).await;
    let rules = ["on", ">hush", "~*", "&*", "+@all", "-@scripting"];
    redis::cmd("ACL").arg("SETUSER").arg("plain").arg(&rules).exec_async(&mut raw).await.expect("a user");
    let with = |cells| Options {
        user: Some("plain".into()),
        password: Some(Secret::new("hush")),
        ..options(server.port(), cells)
    };
    let (scripts, watch) = (Redis::open(with(Cells::Script)).await, Redis::open(with(Cells::Watch)).await);
    let (scripts, watch) = (scripts.expect("it opens"), watch.expect("it opens"));
    for action in every_action() {
        let cell = name("plain");
        let denied = scripts.update(&cell, &CellOp::new(action.clone())).await.expect_err("no scripts");
        assert_eq!((denied.kind(), denied.effect()), (ErrorKind::Denied, Effect::None));
        assert!(denied.hint().is_some_and(|hint| hint.contains("cells=watch")), "{denied:?}");
        watch.update(&cell, &CellOp::new(action)).await.expect("it needs none");
    }
    // One that may not do transactions is refused, rather than left without them.
    redis::cmd("ACL").arg("SETUSER").arg("plain").arg("-multi").exec_async(&mut raw).await.expect("a user");
    let bare = Redis::open(with(Cells::Watch)).await.expect("it opens");
    let cell = name("plain");
    let denied = bare.update(&cell, &CellOp::new(CellAction::Add { by: 1 })).await.expect_err("no transactions");
    assert_eq!((denied.kind(), denied.effect()), (ErrorKind::Denied, Effect::None));
    assert_eq!(watch.read(&cell).await.expect("an answer"), None);
    server.stop().expect("it stops");
}

/// Callers that give up anywhere in an operation: it was done or not, and later ones do not suffer.
#[tokio::test]
async fn a_caller_that_gives_up_hurts_nobody() {
    let Some(port) = port() else { return };
    let store = open(port, Cells::Watch).await;
    let (cell, other) = (name("given-up"), name("given-up"));
    let add = CellOp::new(CellAction::Add { by: 1 });
    let mut given_up = 0;
    for patience in (0..200).map(|step| Duration::from_micros(step * 10)) {
        given_up += u32::from(tokio::time::timeout(patience, store.update(&cell, &add)).await.is_err());
        let touched = store.update(&other, &add).await.expect("an answer");
        assert!(matches!(touched, CellReply::Number { .. }));
    }
    assert!(given_up > 0, "no caller gave up");
    let CellReply::Number { value, .. } = store.update(&cell, &add).await.expect("an answer") else {
        panic!("a number")
    };
    assert!((i64::from(201 - given_up)..=201).contains(&value), "{value} after {given_up} gave up");
    let CellReply::Number { value, .. } = store.update(&other, &add).await.expect("an answer") else {
        panic!("a number")
    };
    assert_eq!(value, 201);
}

/// A closed store answers so, also where it has connections of its own.
#[tokio::test]
async fn a_closed_store_changes_no_cell() {
    let Some(port) = port() else { return };
    for cells in BOTH {
        let (store, cell) = (open(port, cells).await, name("closed"));
        let add = CellOp::new(CellAction::Add { by: 1 });
        store.update(&cell, &add).await.expect("an answer");
        store.close().await.expect("it closes");
        assert_eq!(store.update(&cell, &add).await.expect_err("it is closed").kind(), ErrorKind::Closed);
        assert_eq!(store.read(&cell).await.expect_err("it is closed").kind(), ErrorKind::Closed);
    }
}

/// A kept connection goes with the runtime that drove it; the next caller is not to notice.
#[test]
fn a_connection_outlives_no_runtime() {
    let Some(port) = port() else { return };
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("one");
    let (first, second) = (runtime(), runtime());
    let store = first.block_on(open(port, Cells::Watch));
    let (cell, add) = (name("runtime"), CellOp::new(CellAction::Add { by: 1 }));
    first.block_on(store.update(&cell, &add)).expect("an answer");
    drop(first);
    let reply = second.block_on(store.update(&cell, &add)).expect("an answer");
    assert!(matches!(reply, CellReply::Number { value: 2, .. }), "{reply:?}");
}
