//! What may be at the path, and what may happen to it: never a panic, never a free lock by mistake.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use lockkeeper_core::cell::{CellAction, CellOp};
use lockkeeper_core::store::{Held, Keep, Page, Renewal, Standing, Store};
use lockkeeper_core::{Effect, ErrorKind, Result};
use lockkeeper_sqlite::{Options, Sqlite};

use crate::common::*;
use crate::processes::{child, said_by};

async fn refused(path: &Path) -> ErrorKind {
    let error = Sqlite::open(Options::at(path)).await.unwrap_err();
    assert!(error.hint().is_some(), "{error:?}");
    assert_eq!(error.effect(), Effect::None);
    error.kind()
}

#[tokio::test]
async fn other_files_are_refused_and_left_alone() {
    let bench = Bench::new();
    let path = bench.path();
    let statements = include_str!("foreign.sql");
    let another: &dyn Fn() = &|| bench.raw().execute_batch(statements).unwrap();
    let marked: &dyn Fn() = &|| bench.raw().pragma_update(None, "application_id", 77).unwrap();
    let text: &dyn Fn() = &|| fs::write(&path, "dear diary, ".repeat(1_000)).unwrap();
    let short: &dyn Fn() = &|| fs::write(&path, "x").unwrap();
    let longer: &dyn Fn() = &|| fs::write(&path, [0; 600]).unwrap();
    for make in [another, marked, text, short, longer] {
        make();
        let before = fs::read(&path).unwrap();
        assert_eq!(refused(&path).await, ErrorKind::Foreign);
        assert_eq!(fs::read(&path).unwrap(), before);
        fs::remove_file(&path).unwrap();
    }
    assert_eq!(refused(bench.directory.path()).await, ErrorKind::Invalid);
}

#[tokio::test]
async fn a_newer_version_is_refused_with_a_hint() {
    let bench = Bench::new();
    bench.open().await.close().await.unwrap();
    bench.raw().pragma_update(None, "user_version", 99).unwrap();
    let error = Sqlite::open(Options::at(bench.path())).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.hint().unwrap().contains("upgrade"));
}

fn is_foreign<T: std::fmt::Debug>(answer: Result<T>) {
    let error = answer.unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Foreign, Effect::None), "{error:?}");
    assert!(error.hint().is_some());
}

#[tokio::test]
async fn a_row_that_is_not_ours_is_never_free() {
    let bench = Bench::new();
    let store = bench.open().await;
    let (bad, good) = (name("bad"), name("good"));
    let claim = mutex(LONG);
    acquire(&store, &good, &claim).await;
    for damage in include_str!("damage.sql").lines().filter(|line| !line.starts_with("--")) {
        let victim = mutex(LONG);
        acquire(&store, &bad, &victim).await;
        bench.raw().execute_batch(damage).unwrap();
        is_foreign(store.enter(&bad, &at_once(LONG)).await);
        is_foreign(store.enter(&bad, &victim).await);
        is_foreign(store.leave(&bad, victim.id, Keep::Nothing).await);
        is_foreign(store.inspect(Page::first(10)).await);
        let hold = |lock: &lockkeeper_core::Name, id| Held { lock: lock.clone(), id, lease: LONG };
        let renewed = store.renew(&[hold(&bad, victim.id), hold(&good, claim.id)]).await.unwrap();
        assert!(matches!(renewed[..], [Renewal::Gone, Renewal::Renewed { .. }]), "{damage}");
        assert!(is_held(&store.enter(&good, &claim).await.unwrap()));
        assert_eq!(bench.raw().execute(include_str!("repair.sql"), []).unwrap(), 1, "{damage}");
    }
    // A name that cannot be one only bothers those who list names.
    bench.raw().execute_batch(include_str!("rename.sql")).unwrap();
    is_foreign(store.inspect(Page::first(10)).await);
    assert!(is_held(&store.enter(&good, &claim).await.unwrap()));
}

#[tokio::test]
async fn a_cell_that_is_not_ours_is_not_touched() {
    let bench = Bench::new();
    let store = bench.open().await;
    let put = CellOp::new(CellAction::Put { value: vec![1], if_version: None });
    for damage in include_str!("damage_cells.sql").lines() {
        store.update(&name("c"), &put).await.unwrap();
        bench.raw().execute_batch(damage).unwrap();
        is_foreign(store.read(&name("c")).await);
        is_foreign(store.update(&name("c"), &put).await);
        bench.raw().execute_batch(include_str!("repair_cells.sql")).unwrap();
    }
}

#[tokio::test]
async fn a_last_number_that_is_not_ours_stops_everything() {
    let bench = Bench::new();
    let store = bench.open().await;
    for damage in include_str!("damage_meta.sql").lines() {
        bench.raw().execute_batch(damage).unwrap();
        is_foreign(store.enter(&name("a"), &mutex(LONG)).await);
        is_foreign(store.inspect(Page::first(1)).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_damage_makes_it_panic() {
    let bench = Bench::new();
    let store = bench.open().await;
    for at in 0..40 {
        acquire(&store, &name(&format!("lock/{at}")), &mutex(LONG)).await;
        let put = CellOp::new(CellAction::Put { value: vec![at; 500], if_version: None });
        store.update(&name(&format!("cell/{at}")), &put).await.unwrap();
    }
    store.close().await.unwrap();
    let whole = fs::read(bench.path()).unwrap();
    let seed = fastrand::u64(..);
    eprintln!("seed {seed}");
    let mut dice = fastrand::Rng::with_seed(seed);
    let mut kinds = std::collections::BTreeMap::<&str, u32>::new();
    for _ in 0..150 {
        let mut bytes = whole.clone();
        for _ in 0..dice.usize(1..20) {
            let at = dice.usize(..bytes.len());
            bytes[at] = dice.u8(..);
        }
        if dice.u8(..5) == 0 {
            bytes.truncate(dice.usize(..bytes.len()));
        }
        let path = bench.directory.path().join("damaged.db");
        fs::write(&path, bytes).unwrap();
        let mut note = |answer: Result<()>| {
            *kinds.entry(answer.map_or_else(|error| error.kind().as_str(), |()| "ok")).or_default() += 1;
        };
        match Sqlite::open(Options::at(&path)).await {
            Err(error) => note(Err(error)),
            Ok(store) => {
                let (lock, claim) = (name(&format!("lock/{}", dice.u8(..40))), at_once(LONG));
                note(store.enter(&lock, &claim).await.map(drop));
                note(store.leave(&lock, claim.id, LONG.into()).await.map(drop));
                note(store.inspect(Page::first(100)).await.map(drop));
                note(store.read(&name(&format!("cell/{}", dice.u8(..40)))).await.map(drop));
                note(store.update(&name("cell/1"), &CellOp::new(CellAction::Add { by: 1 })).await.map(drop));
                store.close().await.unwrap();
            }
        }
        for rest in ["damaged.db", "damaged.db-wal", "damaged.db-shm", "damaged.db-journal"] {
            fs::remove_file(bench.directory.path().join(rest)).ok();
        }
    }
    eprintln!("{kinds:?}");
    assert!(!kinds.contains_key("bug") && !kinds.contains_key("closed"), "{kinds:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_file_is_noticed() {
    let bench = Bench::new();
    let store = bench.open().await;
    let (lock, claim) = (name("a"), mutex(LONG));
    acquire(&store, &lock, &claim).await;
    for rest in ["locks.db", "locks.db-wal", "locks.db-shm"] {
        fs::remove_file(bench.directory.path().join(rest)).unwrap();
    }
    // Another process starts anew; the old one must not go on in a file that nobody sees.
    let other = bench.open().await;
    let theirs = mutex(LONG);
    acquire(&other, &lock, &theirs).await;
    let held = [Held { lock: lock.clone(), id: claim.id, lease: LONG }];
    assert_eq!(store.renew(&held).await.unwrap(), [Renewal::Gone]);
    assert!(matches!(store.enter(&lock, &at_once(LONG)).await.unwrap(), Standing::Refused { .. }));
    store.close().await.unwrap();
    release(&other, &lock, &theirs).await;
    other.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_kept_busy_is_unavailable() {
    let bench = Bench::new();
    let store = bench.open().await;
    let (lock, claim) = (name("a"), mutex(LONG));
    acquire(&store, &lock, &claim).await;
    let mut raw = bench.raw();
    let hog = raw.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
    let error = store.enter(&name("b"), &mutex(LONG)).await.unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::None));
    assert!(error.is_transient() && error.hint().unwrap().contains("fuser"));
    // Looking on needs no write lock.
    assert_eq!(store.inspect(Page::first(9)).await.unwrap().len(), 1);
    hog.rollback().unwrap();
    assert!(is_held(&store.enter(&name("b"), &mutex(LONG)).await.unwrap()));
}

/// Root may do anything, so that somebody else has to try.
fn as_user(uid: u32, gid: u32, path: &Path) -> Option<String> {
    run_as(child(&[], "try", path).uid(uid).gid(gid))
}

/// A user who is in the group besides one of its own.
fn as_member(uid: u32, group: u32, path: &Path) -> Option<String> {
    let (uid, group) = (uid.to_string(), group.to_string());
    run_as(&mut child(&["setpriv", "--reuid", &uid, "--regid", &uid, "--groups", &group], "try", path))
}

fn run_as(command: &mut Command) -> Option<String> {
    let spawned = command.spawn();
    let Ok(tried) = spawned else {
        eprintln!("SKIPPED: this program cannot be run as another user here");
        return None;
    };
    let said = said_by(tried).pop();
    if said.is_none() {
        eprintln!("SKIPPED: another user cannot run this program here");
    }
    said
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn without_permission_it_is_denied() {
    let bench = Bench::new();
    bench.open().await.close().await.unwrap();
    let file = bench.path();
    for (directory, mode) in [(0o700, 0o600), (0o755, 0o600), (0o755, 0o644), (0o755, 0o666)] {
        chmod(bench.directory.path(), directory);
        chmod(&file, mode);
        let Some(said) = as_user(65_534, 65_534, &file) else { return };
        assert!(said.starts_with("denied this user needs to write"), "{directory:o} {mode:o}: {said}");
        let Some(said) = as_user(65_534, 65_534, &bench.directory.path().join("new/locks.db")) else { return };
        assert!(said.starts_with("denied this user needs to write"), "{said}");
    }
}

#[tokio::test]
async fn a_group_shares_a_file_in_its_directory() {
    let bench = Bench::new();
    let shared = bench.directory.path().join("shared");
    fs::create_dir(&shared).unwrap();
    let group = 60_500;
    if std::os::unix::fs::chown(&shared, None, Some(group)).is_err() {
        eprintln!("SKIPPED: only root can give a directory to a group it is not in");
        return;
    }
    chmod(bench.directory.path(), 0o755);
    chmod(&shared, 0o770);
    let file = shared.join("locks.db");
    let Some(first) = as_member(60_001, group, &file) else { return };
    assert_eq!(first, "held");
    // The first has gone, but its lease runs on.
    assert_eq!(as_member(60_002, group, &file).unwrap(), "refused");
    assert_eq!(as_user(60_004, group, &file).unwrap(), "refused");
    assert!(as_user(60_003, 60_003, &file).unwrap().starts_with("denied"));
}
