//! Cells in etcd: where they stand, what their versions are, and what is not ours.

use std::time::Duration;

use lockkeeper_core::cell::{CellAction, CellOp, CellReply};
use lockkeeper_core::store::Store;
use lockkeeper_core::{Error, ErrorKind, Name};
use lockkeeper_etcd::Etcd;

use crate::common::*;

async fn apply(store: &Etcd, cell: &Name, action: CellAction) -> Result<CellReply, Error> {
    store.update(cell, &CellOp { action, keep: None }).await
}

fn put(value: &[u8]) -> CellAction {
    CellAction::Put { value: value.to_vec(), if_version: None }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cell_is_a_key_whose_mod_revision_is_its_version() {
    let Some(port) = shared() else { return };
    let (store, cell) = (open(&[port]).await, fresh("cells"));
    let CellReply::Done { version } = apply(&store, &cell, put(b"one")).await.unwrap() else { panic!("it is put") };
    let key = format!("{{cell}}/{cell}");
    let [kv] = &keys_under(port, &key).await[..] else { panic!("one key") };
    assert_eq!((&kv.key, kv.changed, kv.lease), (&key, version, 0));
    assert!(kv.value.starts_with("lk1 bytes 0 ") && kv.value.ends_with("\\none"), "{kv:?}");
    let seen = store.read(&cell).await.unwrap().expect("it is there");
    assert_eq!((&seen.value[..], seen.version), (&b"one"[..], version));

    let CellReply::Done { version: next } = apply(&store, &cell, put(b"two")).await.unwrap() else { panic!("put") };
    assert!(next > version);
    assert_eq!(keys_under(port, &key).await[0].changed, next);
    let stale = CellAction::Put { value: b"three".to_vec(), if_version: Some(version) };
    let answer = apply(&store, &cell, stale).await.unwrap();
    assert!(matches!(answer, CellReply::Conflict { current: Some(current) } if current.version == next));

    apply(&store, &cell, CellAction::Remove { if_version: None }).await.unwrap();
    assert_eq!(keys_under(port, &key).await, []);
    // A version is never used again.
    let CellReply::Number { value: 5, version } = apply(&store, &cell, CellAction::Add { by: 5 }).await.unwrap() else {
        panic!("it is added")
    };
    assert!(version > next);
    assert!(keys_under(port, &key).await[0].value.ends_with("\\n5"));
    apply(&store, &cell, CellAction::Remove { if_version: None }).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_put_in_the_place_of_a_cell_is_foreign_and_stays() {
    let Some(port) = shared() else { return };
    let (store, cell) = (open(&[port]).await, fresh("cells"));
    let key = format!("{{cell}}/{cell}");
    for theirs in ["something", "lk1 bytes x 0 0 ", "lk2 bytes 0 0 0 ", ""] {
        etcdctl(port, &["put", &key, theirs]).await;
        let before = keys_under(port, &key).await;
        let mut errors = vec![store.read(&cell).await.map(|_| ()).expect_err("not ours to read")];
        for action in [put(b"x"), CellAction::Add { by: 1 }, CellAction::Remove { if_version: None }] {
            errors.push(apply(&store, &cell, action).await.map(|_| ()).expect_err("not ours to change"));
        }
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::Foreign, "{error:?}");
            assert!(error.hint().is_some_and(|hint| hint.contains("not touched")), "{error:?}");
        }
        assert_eq!(keys_under(port, &key).await, before);
    }
    etcdctl(port, &["del", &key]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cell_with_a_time_vanishes_unless_it_is_changed_meanwhile() {
    let Some(port) = shared() else { return };
    let (store, cell, kept) = (open(&[port]).await, fresh("cells"), fresh("cells"));
    let op = CellOp { action: put(b"for a while"), keep: Some(Duration::from_secs(2)) };
    for cell in [&cell, &kept] {
        store.update(cell, &op).await.unwrap();
        assert_ne!(keys_under(port, &format!("{{cell}}/{cell}")).await[0].lease, 0);
    }
    // Without a time it stays.
    apply(&store, &kept, put(b"for good")).await.unwrap();
    until("it is forgotten", || async { store.read(&cell).await.unwrap().is_none() }).await;
    assert_eq!(keys_under(port, &format!("{{cell}}/{cell}")).await, []);
    assert_eq!(store.read(&kept).await.unwrap().expect("it is there").value, b"for good");
    assert_eq!(keys_under(port, &format!("{{cell}}/{kept}")).await[0].lease, 0);
    apply(&store, &kept, CellAction::Remove { if_version: None }).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limiter_is_refused_with_a_hint() {
    let Some(port) = shared() else { return };
    let (store, cell) = (open(&[port]).await, fresh("cells"));
    let per = Duration::from_secs(1);
    let window = CellAction::Window { take: 1, limit: 5, per };
    for action in [window, CellAction::Gcra { take: 1, limit: 5, per }] {
        let error = apply(&store, &cell, action).await.expect_err("etcd has no clock");
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error:?}");
        assert!(error.hint().is_some_and(|hint| hint.contains("redis://")), "{error:?}");
    }
    assert_eq!(keys_under(port, &format!("{{cell}}/{cell}")).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_add_at_once_and_none_is_lost() {
    let Some(port) = shared() else { return };
    let cell = fresh("cells");
    let mut adding = Vec::new();
    for _ in 0..4 {
        let store = open(&[port]).await;
        for _ in 0..3 {
            let (store, cell) = (store.clone(), cell.clone());
            adding.push(tokio::spawn(async move {
                for _ in 0..10 {
                    apply(&store, &cell, CellAction::Add { by: 1 }).await.expect("it is added");
                }
            }));
        }
    }
    for task in adding {
        within(Duration::from_secs(40), "it ends", task).await.unwrap();
    }
    let store = open(&[port]).await;
    assert_eq!(store.read(&cell).await.unwrap().expect("it is there").value, b"120");
    apply(&store, &cell, CellAction::Remove { if_version: None }).await.unwrap();
}
