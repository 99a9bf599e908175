//! What a keeper emits is what `docs/metrics.md` says, and the other way round.
//!
//! The recorder is the process's one, because renewals are counted on the watchdog's thread; so this is a test binary of
//! its own with one test.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockkeeper_core::layers::{Answer, Call, Layer, Next, wrap};
use lockkeeper_core::store::{Keep, Reply};
use lockkeeper_core::stores::Memory;
use lockkeeper_core::{Error, Keeper, Result};
use metrics::{Counter, Gauge, GaugeFn, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

/// By name: the type, and for each label the values seen.
type Book = BTreeMap<String, (&'static str, BTreeMap<String, BTreeSet<String>>)>;

#[derive(Clone, Default)]
struct Notebook {
    book: Arc<Mutex<Book>>,
    holds: Arc<Level>,
}

/// What the gauge says.
#[derive(Default)]
struct Level(AtomicI64);

impl GaugeFn for Level {
    fn increment(&self, by: f64) {
        self.0.fetch_add(by as i64, Ordering::SeqCst);
    }
    fn decrement(&self, by: f64) {
        self.0.fetch_sub(by as i64, Ordering::SeqCst);
    }
    fn set(&self, _: f64) {
        panic!("several keepers share the gauge, so none may set it");
    }
}

impl Notebook {
    fn note(&self, key: &Key, sort: &'static str) {
        let mut book = self.book.lock().unwrap();
        let (noted, labels) = book.entry(key.name().to_owned()).or_insert_with(|| (sort, BTreeMap::new()));
        assert_eq!(*noted, sort, "{key}");
        for label in key.labels() {
            labels.entry(label.key().to_owned()).or_default().insert(label.value().to_owned());
        }
    }
}

impl Recorder for Notebook {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        self.note(key, "counter");
        Counter::noop()
    }
    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        self.note(key, "gauge");
        Gauge::from_arc(self.holds.clone())
    }
    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        self.note(key, "histogram");
        Histogram::noop()
    }
}

/// Both tables of the page: names with their types and labels, then the values of labels.
fn documented() -> Book {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md")).unwrap();
    let ticked = |cell: &str| -> BTreeSet<String> { cell.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    let mut book = Book::new();
    for row in page.lines().filter(|row| row.starts_with("| `lockkeeper_")) {
        let cells: Vec<_> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let name = cells[0].trim_matches(['`', ' ']).to_owned();
        match ["counter", "gauge", "histogram"].into_iter().find(|sort| *sort == cells[1]) {
            Some(sort) => {
                let labels = ticked(cells[2]).into_iter().map(|label| (label, BTreeSet::new())).collect();
                assert!(book.insert(name, (sort, labels)).is_none(), "{row}");
            }
            None => {
                let known = &mut book.get_mut(&name).expect(row).1;
                *known.get_mut(cells[1].trim_matches('`')).expect(row) = ticked(&unremarked(cells[2]));
            }
        }
    }
    book
}

/// Without what stands in brackets.
fn unremarked(cell: &str) -> String {
    cell.split('(').map(|piece| piece.rsplit(')').next().unwrap_or_default()).collect()
}

/// Loses the calls that a test says.
#[derive(Debug, Clone, Default)]
struct Lose {
    renew: Arc<AtomicBool>,
    leave: Arc<AtomicBool>,
}

impl Layer for Lose {
    fn around<'a>(&'a self, call: Call<'a>, next: Next<'a>) -> Reply<'a, Answer> {
        let lost = match call {
            Call::Renew { .. } => &self.renew,
            Call::Leave { .. } => &self.leave,
            _ => return next.run(call).reply(),
        };
        if lost.load(Ordering::SeqCst) {
            return Box::pin(async { Err(Error::unanswered("lost on purpose")) });
        }
        next.run(call).reply()
    }
}

const SHORT: Duration = Duration::from_millis(300);

async fn all_kinds(keeper: &Keeper) -> Result<()> {
    keeper.rwlock("rw").write().await?.downgrade().await?.release().await?;
    keeper.semaphore("sem", 2).acquire().await?.release().await?;
    keeper.election("lead").campaign().await?.resign().await?;
    keeper.once("job").run(|_| async { Ok::<_, Error>(vec![1]) }).await?;
    keeper.ping().await
}

async fn every_outcome(keeper: &Keeper, lose: &Lose) -> Result<()> {
    let mutex = keeper.mutex("m");
    let held = mutex.lock().await?;
    assert!(mutex.try_lock().await?.is_none());
    assert!(mutex.clone().wait(Duration::from_millis(20)).fair().lock().await.is_err());
    assert!(mutex.clone().lease(Duration::ZERO).lock().await.is_err());
    let next = tokio::spawn({
        let mutex = mutex.clone();
        async move { mutex.lock().await }
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    held.release().await?; // handed on
    drop(next.await.expect("a task")?);

    let broken = keeper.mutex("broken").lease(SHORT).lock().await?;
    keeper.break_claim("broken", broken.claim_id(), Keep::Nothing).await?;
    broken.lost().await; // a renewal finds it gone
    assert!(broken.release().await.is_err());
    let brief = keeper.mutex("brief").at_most(SHORT).lock().await?;
    brief.lost().await;

    lose.renew.store(true, Ordering::SeqCst);
    let shaky = keeper.mutex("shaky").lease(SHORT * 4).lock().await?;
    tokio::time::sleep(SHORT * 2).await;
    lose.renew.store(false, Ordering::SeqCst);
    let seen = shaky.deadline();
    shaky.deadline_after(seen).await; // renewed
    lose.leave.store(true, Ordering::SeqCst);
    assert!(shaky.release().await.is_err());
    lose.leave.store(false, Ordering::SeqCst);
    Ok(())
}

#[tokio::test]
async fn what_is_emitted_is_what_is_documented() {
    let notebook = Notebook::default();
    assert!(metrics::set_global_recorder(notebook.clone()).is_ok());
    let lose = Lose::default();
    let keeper = Keeper::builder().attempts(1).with_store(wrap(Memory::shared(), lose.clone()));
    all_kinds(&keeper).await.unwrap();
    every_outcome(&keeper, &lose).await.unwrap();
    assert_eq!(notebook.holds.0.load(Ordering::SeqCst), 0, "every hold was counted in and out");
    let (one, two) = (keeper.mutex("one").lock().await.unwrap(), keeper.mutex("two").lock().await.unwrap());
    assert_eq!(notebook.holds.0.load(Ordering::SeqCst), 2);
    keeper.close().await.unwrap();
    assert!(!one.is_held() && !two.is_held());
    assert_eq!(notebook.holds.0.load(Ordering::SeqCst), 0);

    let (emitted, documented) = (notebook.book.lock().unwrap().clone(), documented());
    let names = |book: &Book| book.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&emitted), names(&documented));
    for (name, (sort, labels)) in &documented {
        let (emitted_sort, emitted) = &emitted[name];
        assert_eq!(emitted_sort, sort, "{name}");
        let keys = |labels: &BTreeMap<String, BTreeSet<String>>| labels.keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(emitted), keys(labels), "{name}");
        for (label, values) in labels.iter().filter(|(label, _)| *label != "store") {
            let seen = &emitted[label];
            assert!(seen.is_subset(values), "{name} {label}: {seen:?} are not all in {values:?}");
            // Not every error can be brought about here.
            if !(name == "lockkeeper_calls_total" && label == "outcome") {
                assert_eq!(seen, values, "{name} {label}");
            }
        }
    }
}
