//! Real processes: they exclude each other, wake each other, are killed, and live in other time namespaces.
//!
//! A child is this test program again, told by its environment what to do.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lockkeeper_core::cell::{CellAction, CellOp};
use lockkeeper_core::store::{Page, Store};
use lockkeeper_sqlite::{Options, Sqlite};

use crate::common::*;

const ROLE: &str = "LOCKKEEPER_TEST_CHILD";
const FILE: &str = "LOCKKEEPER_TEST_FILE";

/// This program as a child, perhaps by way of another one.
pub fn child(through: &[&str], role: &str, file: &Path) -> Command {
    let this = std::env::current_exe().unwrap();
    let mut command = match through {
        [] => Command::new(&this),
        [first, rest @ ..] => {
            let mut command = Command::new(first);
            command.args(rest).arg(&this);
            command
        }
    };
    command.args(["--exact", "processes::as_a_child", "--nocapture"]);
    command.env(ROLE, role).env(FILE, file).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// What a child says, line by line.
pub struct Says(BufReader<std::process::ChildStdout>);

impl Says {
    pub fn of(child: &mut Child) -> Self {
        Self(BufReader::new(child.stdout.take().unwrap()))
    }

    pub fn next(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            // The test harness talks, too, and does not end its line before the child speaks.
            if let Some((_, said)) = line.trim_end().split_once("child: ") {
                return Some(said.to_owned());
            }
        }
    }
}

/// All that a child says until it ends.
pub fn said_by(mut child: Child) -> Vec<String> {
    let mut says = Says::of(&mut child);
    let all = std::iter::from_fn(|| says.next()).collect();
    child.wait().unwrap();
    all
}

fn say(text: impl std::fmt::Display) {
    println!("child: {text}");
    std::io::stdout().flush().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn as_a_child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let path = std::path::PathBuf::from(std::env::var_os(FILE).unwrap());
    match role.as_str() {
        "count" => count(&path).await,
        "rage" => rage(&path).await,
        "hold" => hold(&path).await,
        "relay" => relay(&path).await,
        "try" => try_once(&path).await,
        "fill" => fill(&path).await,
        other => panic!("{other}"),
    }
}

/// Adds one to a plain file, many times, each time under the lock.
async fn count(path: &Path) {
    let store = open_at(path).await;
    let number = path.with_extension("number");
    for _ in 0..40 {
        let claim = mutex(LONG);
        let token = acquire(&store, &name("count"), &claim).await.as_u64();
        let text = std::fs::read_to_string(&number).unwrap();
        let (count, last) = text.split_once(' ').unwrap();
        assert!(last.parse::<u64>().unwrap() < token, "tokens rise");
        let count = count.parse::<u32>().unwrap() + 1;
        std::fs::write(&number, format!("{count} {token}")).unwrap();
        release(&store, &name("count"), &claim).await;
    }
    store.close().await.unwrap();
}

/// Writes as fast as it can until it is killed.
async fn rage(path: &Path) {
    let store = Sqlite::open(Options::at(path)).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..8 {
        let store = store.clone();
        tasks.spawn(async move {
            for round in 0.. {
                let (lock, claim) = (name(&format!("rage/{task}")), mutex(Duration::from_millis(100)));
                let token = acquire(&store, &lock, &claim).await;
                let value = vec![task; 3_000];
                let put = CellOp::new(CellAction::Put { value, if_version: None });
                store.update(&lock, &put).await.unwrap();
                release(&store, &lock, &claim).await;
                if round % 20 == 0 {
                    say(token);
                }
            }
        });
    }
    tasks.join_all().await;
}

async fn hold(path: &Path) {
    let store = open_at(path).await;
    say(acquire(&store, &name("held"), &mutex(Duration::from_secs(1))).await);
    std::future::pending::<()>().await;
}

/// Waits for the lock, says so, and gives it back, again and again.
async fn relay(path: &Path) {
    let store = open_at(path).await;
    for _ in 0..15 {
        let claim = mutex(LONG);
        store.enter(&name("relay"), &claim).await.unwrap();
        say("waiting");
        acquire(&store, &name("relay"), &claim).await;
        say("held");
        release(&store, &name("relay"), &claim).await;
        // The parent takes it first, then tells us to go on.
        tokio::task::spawn_blocking(|| std::io::stdin().lines().next()).await.unwrap();
    }
}

async fn try_once(path: &Path) {
    match Sqlite::open(Options::at(path)).await {
        Err(error) => say(format!("{} {}", error.kind().as_str(), error.hint().unwrap_or("without a hint"))),
        Ok(store) => match store.enter(&name("held"), &at_once(LONG)).await {
            Err(error) => say(format!("{} {}", error.kind().as_str(), error.hint().unwrap_or("without a hint"))),
            Ok(standing) => say(if is_held(&standing) { "held" } else { "refused" }),
        },
    }
}

/// Writes until the disk is full, then looks whether what was there still is.
async fn fill(path: &Path) {
    let store = Sqlite::open(Options::at(path)).await.unwrap();
    acquire(&store, &name("held"), &mutex(LONG)).await;
    let error = 'full: {
        for cell in 0..1_000 {
            let put = CellOp::new(CellAction::Put { value: vec![7; 60_000], if_version: None });
            if let Err(error) = store.update(&name(&format!("cell/{cell}")), &put).await {
                break 'full error;
            }
        }
        panic!("the disk is never full");
    };
    assert!(store.read(&name("cell/0")).await.unwrap().is_some());
    assert_eq!(store.inspect(Page::first(9)).await.unwrap().len(), 1);
    say(format!("{} {}", error.kind().as_str(), error.hint().unwrap_or("without a hint")));
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_count_without_losing_any() {
    let bench = Bench::new();
    let number = bench.path().with_extension("number");
    std::fs::write(&number, "0 0").unwrap();
    // The file itself is made by whoever comes first.
    let children: Vec<_> = (0..4).map(|_| child(&[], "count", &bench.path()).spawn().unwrap()).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    let text = std::fs::read_to_string(&number).unwrap();
    assert!(text.starts_with("160 "), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_may_make_the_file_at_once() {
    let bench = Bench::new();
    for round in 0..12 {
        let path = bench.directory.path().join(format!("new/{round}/locks.db"));
        let children: Vec<_> = (0..5).map(|_| child(&[], "try", &path).spawn().unwrap()).collect();
        let said: Vec<_> = children.into_iter().flat_map(said_by).collect();
        assert_eq!(said.iter().filter(|one| *one == "held").count(), 1, "{said:?}");
        // A disk that stalls for seconds makes the others give up, which is no fault of theirs.
        let is_fine = |one: &String| ["held", "refused"].contains(&one.as_str()) || one.starts_with("unavailable");
        assert!(said.len() == 5 && said.iter().all(is_fine), "{said:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_writer_leaves_a_usable_file() {
    let bench = Bench::new();
    let mut greatest = 0;
    for round in 0..6 {
        let mut raging = child(&[], "rage", &bench.path()).spawn().unwrap();
        let mut says = Says::of(&mut raging);
        for _ in 0..10 + round {
            greatest = greatest.max(says.next().unwrap().parse::<u64>().unwrap());
        }
        raging.kill().unwrap();
        raging.wait().unwrap();
        while let Some(said) = says.next() {
            greatest = greatest.max(said.parse::<u64>().unwrap());
        }
        let check = |row: &rusqlite::Row<'_>| row.get::<_, String>(0);
        assert_eq!(bench.raw().pragma_query_value(None, "integrity_check", check).unwrap(), "ok");
        let store = bench.open().await;
        for task in 0..8 {
            let claim = mutex(LONG);
            let lock = name(&format!("rage/{task}"));
            let token = acquire(&store, &lock, &claim).await.as_u64();
            assert!(token > greatest, "what the killed one left ends by itself, and numbers go on");
            release(&store, &lock, &claim).await;
        }
        store.close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_holder_frees_the_lock_when_its_lease_ends() {
    let bench = Bench::new();
    let mut holder = child(&[], "hold", &bench.path()).spawn().unwrap();
    let token: u64 = Says::of(&mut holder).next().unwrap().parse().unwrap();
    let store = bench.open().await;
    assert!(!is_held(&store.enter(&name("held"), &at_once(LONG)).await.unwrap()));
    holder.kill().unwrap();
    holder.wait().unwrap();
    let began = Instant::now();
    let mut claim = mutex(LONG);
    claim.lease = Duration::from_secs(1);
    assert!(acquire(&store, &name("held"), &claim).await.as_u64() > token);
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_wake_each_other_by_push() {
    let bench = Bench::new();
    let store = bench.open().await;
    let mut first = mutex(LONG);
    acquire(&store, &name("relay"), &first).await;
    let mut relay = child(&[], "relay", &bench.path()).spawn().unwrap();
    let (mut says, mut tell) = (Says::of(&mut relay), relay.stdin.take().unwrap());
    let mut times = Vec::new();
    for _ in 0..15 {
        assert_eq!(says.next().unwrap(), "waiting");
        tokio::time::sleep(Duration::from_millis(15)).await;
        let began = Instant::now();
        release(&store, &name("relay"), &first).await;
        assert_eq!(says.next().unwrap(), "held");
        times.push(began.elapsed());
        first = mutex(LONG);
        acquire(&store, &name("relay"), &first).await;
        writeln!(tell, "go on").unwrap();
    }
    times.sort();
    eprintln!("a release was a hold of the other process after {:?} (median)", times[7]);
    assert!(times[7] < Duration::from_millis(150), "{times:?}");
    assert!(relay.wait().unwrap().success());
}

/// A child in a time namespace whose clock is far ahead.
fn elsewhere(role: &str, bench: &Bench) -> Option<Command> {
    let through = ["unshare", "--time", "--boottime", "1000000", "--fork", "--kill-child"];
    let works = Command::new(through[0]).args(&through[1..]).arg("true").status().is_ok_and(|done| done.success());
    if !works {
        eprintln!("SKIPPED: no time namespace can be made here (not root, or no `unshare`)");
        return None;
    }
    Some(child(&through, role, &bench.path()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_with_another_clock_is_excluded_and_excludes() {
    let bench = Bench::new();
    let Some(mut trying) = elsewhere("try", &bench) else { return };
    let store = bench.open().await;
    let claim = mutex(LONG);
    acquire(&store, &name("held"), &claim).await;
    assert_eq!(said_by(trying.spawn().unwrap()), ["refused"], "to its clock the lease ended long ago");
    release(&store, &name("held"), &claim).await;

    let mut holding = elsewhere("hold", &bench).unwrap().spawn().unwrap();
    Says::of(&mut holding).next().unwrap();
    let seen = Instant::now();
    assert!(!is_held(&store.enter(&name("held"), &at_once(LONG)).await.unwrap()));
    holding.kill().unwrap();
    holding.wait().unwrap();
    // To our clock its lease of one second ends in eleven days.
    let mut claim = mutex(Duration::from_secs(3));
    claim.lease = Duration::from_secs(1);
    acquire(&store, &name("held"), &claim).await;
    assert!(seen.elapsed() >= Duration::from_secs(1), "seen for its whole lease: {:?}", seen.elapsed());
    assert!(seen.elapsed() < LONG);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_said_and_costs_nothing() {
    let bench = Bench::new();
    let script = r#"mount -t tmpfs -o size=2m none "$0" && exec "$@""#;
    let at = bench.directory.path().to_str().unwrap().to_owned();
    let through = ["unshare", "--mount", "sh", "-c", script, &at];
    let works = Command::new(through[0]).args(&through[1..]).arg("true").status().is_ok_and(|done| done.success());
    if !works {
        eprintln!("SKIPPED: no small file system can be mounted here (not root, or no `unshare`)");
        return;
    }
    let output = child(&through, "fill", &bench.path()).spawn().unwrap().wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("child: unavailable free some space"), "{text}");
}
