//! Every law on every store that needs no server, on every layer, and on a store that loses calls.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use lockkeeper_conformance::{Exclusive, World, exclusive_suite, suite};
use lockkeeper_core::layers::{Check, Fault, Faults, Layer, Metrics, Prefix, Retry, Timeout, Trace, wrap};
use lockkeeper_core::store::SharedStore;
use lockkeeper_core::stores::Memory;

/// The example of a store of one's own keeps the laws as well.
#[expect(dead_code, reason = "its `main` is for those who run the example")]
#[path = "../../../examples/own_store.rs"]
mod board;

/// One store, opened again and again.
fn on(store: &str, shared: SharedStore) -> World {
    World::new(store, move || {
        let shared = shared.clone();
        async move { shared }
    })
}

/// The memory store under one layer.
fn under(store: &str, layer: impl Layer) -> World {
    on(store, wrap(Memory::shared(), layer))
}

fn memory_under_fault() -> World {
    let seed = fastrand::u64(..);
    eprintln!("faults from seed {seed}");
    let faulty = wrap(Memory::shared(), Fault::new(Faults::often(seed)));
    on("memory+fault", wrap(faulty, Retry { attempts: 8, pause: Duration::from_millis(1) })).flaky()
}

/// One file for all laws, as for all programs of a user; each client opens it anew.
fn sqlite() -> World {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(fresh_folder);
    let url = format!("sqlite:{}", FOLDER.join("locks.db").display());
    let opened = url.clone();
    let world = World::new("sqlite", move || {
        let url = opened.clone();
        async move { lockkeeper::open(&url).await.expect("the store opens") }
    });
    world.with_processes(url, PathBuf::from(env!("CARGO_BIN_EXE_taker")))
}

/// A folder of this run's own below the build's temporary one. Tests share it until the process ends, so the next
/// run takes it away.
fn fresh_folder() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("laws");
    for old in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
        if !Path::new("/proc").join(old.file_name()).exists() {
            let _ = std::fs::remove_dir_all(old.path());
        }
    }
    let own = folder.join(std::process::id().to_string());
    std::fs::create_dir_all(&own).expect("a folder");
    own
}

/// Nothing is lost here, but half of the calls are late and some arrive twice: no law is left out for that.
fn memory_when_late() -> World {
    let seed = fastrand::u64(..);
    eprintln!("delays from seed {seed}");
    let late = Faults { lose_request: 0, lose_reply: 0, delay: 500, repeat: 200, ..Faults::often(seed) };
    on("memory+late", wrap(Memory::shared(), Fault::new(late)))
}

/// One server for all laws, as for all programs that share it.
fn redis() -> World {
    World::on_server("redis", PathBuf::from(env!("CARGO_BIN_EXE_taker")))
}

/// One member for all laws, and a cluster of three.
fn etcd() -> World {
    World::on_server("etcd", PathBuf::from(env!("CARGO_BIN_EXE_taker")))
}

fn etcd_of_three() -> World {
    World::on_server("etcd-3", PathBuf::from(env!("CARGO_BIN_EXE_taker")))
}

suite!(etcd, etcd());
exclusive_suite!(etcd_semaphore_of_one, etcd().exclusive(Exclusive::Semaphore));
exclusive_suite!(etcd_blocking, etcd().exclusive(Exclusive::Blocking));
exclusive_suite!(etcd_write_lock, etcd().exclusive(Exclusive::Write));
suite!(etcd_of_three, etcd_of_three());
exclusive_suite!(etcd_of_three_semaphore_of_one, etcd_of_three().exclusive(Exclusive::Semaphore));
exclusive_suite!(etcd_of_three_blocking, etcd_of_three().exclusive(Exclusive::Blocking));
exclusive_suite!(etcd_of_three_write_lock, etcd_of_three().exclusive(Exclusive::Write));
suite!(redis, redis());
exclusive_suite!(redis_semaphore_of_one, redis().exclusive(Exclusive::Semaphore));
exclusive_suite!(redis_blocking, redis().exclusive(Exclusive::Blocking));
exclusive_suite!(redis_write_lock, redis().exclusive(Exclusive::Write));
suite!(sqlite, sqlite());
exclusive_suite!(sqlite_semaphore_of_one, sqlite().exclusive(Exclusive::Semaphore));
exclusive_suite!(sqlite_blocking, sqlite().exclusive(Exclusive::Blocking));
exclusive_suite!(sqlite_write_lock, sqlite().exclusive(Exclusive::Write));
suite!(memory, on("memory", Memory::shared()));
exclusive_suite!(memory_semaphore_of_one, on("memory", Memory::shared()).exclusive(Exclusive::Semaphore));
exclusive_suite!(memory_blocking, on("memory", Memory::shared()).exclusive(Exclusive::Blocking));
exclusive_suite!(memory_write_lock, on("memory", Memory::shared()).exclusive(Exclusive::Write));
suite!(check, under("memory+check", Check::default()));
suite!(timeout, under("memory+timeout", Timeout { after: Duration::from_secs(10) }));
suite!(retry, under("memory+retry", Retry { attempts: 3, pause: Duration::from_millis(1) }));
suite!(trace, under("memory+trace", Trace));
suite!(metrics, under("memory+metrics", Metrics::of("memory")));
suite!(prefix, under("memory+prefix", Prefix::new("team/a").expect("a prefix").expect("not empty")));
suite!(fault, memory_under_fault());
suite!(late, memory_when_late());
suite!(own_store, on("own_store", Arc::new(board::Board::default())));

/// A law that nobody runs is no law: each public function of the laws is in the suite.
#[test]
fn every_law_is_in_the_suite() {
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src");
    let suite = std::fs::read_to_string(source.join("lib.rs")).expect("the suite");
    let mut laws = 0;
    for file in std::fs::read_dir(source.join("laws")).expect("the laws") {
        let text = std::fs::read_to_string(file.expect("a file").path()).expect("a file");
        for line in text.lines() {
            let Some(rest) = line.strip_prefix("pub async fn ") else { continue };
            let law = rest.split('(').next().expect("a name");
            assert!(
                suite.contains(&format!("{law},")) || suite.contains(&format!("{law};")),
                "{law} is not in the suite"
            );
            laws += 1;
        }
    }
    assert!(laws > 40, "{laws} laws");
}
