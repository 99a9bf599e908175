//! The embedded store against bare SQLite, on one disk, in one run.

mod distinct;
mod handover;
mod raw;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lockkeeper::Keeper;
use lockkeeper::layers::{Prefix, wrap};
use lockkeeper::store::SharedStore;
use lockkeeper_sqlite::{Options, Sqlite, Sync};

pub use handover::child;

use crate::Outcome;
use crate::harness::{Arm, Bar, Plan, compare};
use crate::local::{self, Turns};
use crate::report::{Figure, Ratio, Report};

/// Measures everything in a folder of its own under `folder`.
pub fn run(plan: Plan, folder: &Path) -> Outcome<Report> {
    let place = tempfile::tempdir_in(folder)?;
    let ratios = vec![
        pairs(plan, place.path(), Sync::Full)?,
        pairs(plan, place.path(), Sync::Normal)?,
        hand_over(plan, place.path(), true)?,
        hand_over(plan, place.path(), false)?,
    ];
    let (turns, figures) = turns(plan, place.path())?;
    let ratios = ratios.into_iter().chain([turns]).collect();
    Ok(Report {
        name: "sqlite",
        about: "the embedded store against bare SQLite with the same statements, on one disk",
        ratios,
        figures,
        beside: Vec::new(),
    })
}

/// The hidden mode for a profiler: one side of a comparison alone, for some seconds.
pub fn alone(side: &str, seconds: u64) -> Outcome<()> {
    let place = tempfile::tempdir_in(std::env::current_dir()?)?;
    let runtime = Arc::new(tokio::runtime::Builder::new_multi_thread().enable_all().build()?);
    let path = place.path().join("alone.db");
    let mut arm: Box<dyn Arm> = match side {
        "ours" => Box::new(distinct::Ours::open(runtime, &path, Sync::Full)?),
        "ours-normal" => Box::new(distinct::Ours::open(runtime, &path, Sync::Normal)?),
        "raw" => Box::new(distinct::Bare::open(runtime, &path, Sync::Full)?),
        "raw-normal" => Box::new(distinct::Bare::open(runtime, &path, Sync::Normal)?),
        "ball" => Box::new(handover::Ours::start(&path)?),
        "ball-raw" => Box::new(handover::Bare::create(&path, true)?),
        other => return Err(format!("there is no side `{other}`").into()),
    };
    let work = arm.run(Duration::from_secs(seconds))?;
    let unit = if side.starts_with("ball") { "µs p50" } else { "pairs/s" };
    println!("{side}: {:.0} {unit}, {:.1} µs of processor per pair", work.score, work.cpu_micros());
    Ok(())
}

/// A keeper as `Keeper::connect` makes it: the default layers and the default prefix.
async fn keeper(path: &Path, sync: Sync) -> Outcome<Keeper> {
    Ok(Keeper::with_store(store(path, sync).await?))
}

async fn store(path: &Path, sync: Sync) -> Outcome<SharedStore> {
    let options = Options { sync, ..Options::at(path) };
    let mut store: SharedStore = Sqlite::open(options).await?;
    if let Some(prefix) = Prefix::new("lockkeeper")? {
        store = wrap(store, prefix);
    }
    Ok(store)
}

/// Turns of the tasks of one process, handed on in the process and not.
fn turns(plan: Plan, folder: &Path) -> Outcome<(Ratio, Vec<Figure>)> {
    let runtime = Arc::new(tokio::runtime::Builder::new_multi_thread().enable_all().build()?);
    let busy = folder.join("turns.db");
    let open = |path: &Path, hand_over| -> Outcome<Turns> {
        let store = runtime.block_on(store(path, Sync::Full))?;
        let keeper = Keeper::builder().hand_over(hand_over).with_store(store);
        Ok(Turns::new(runtime.clone(), keeper.into(), 8))
    };
    let mut ours = open(&busy, true)?;
    let mut base = open(&folder.join("turns-by-store.db"), false)?;
    let found = compare(&mut ours, &mut base, plan)?;
    base.close()?;
    let path = busy.to_str().ok_or("the path is not UTF-8")?;
    let figures = ours.while_another_waits(&["another", path], plan.slice * 10)?.figures();
    ours.close()?;
    let what = "8 tasks of one process on one name, handed on locally, sync=full";
    let (against, bar) = ("every turn by way of the store", Some(Bar::AtLeast(20.0)));
    Ok((Ratio { what, against, unit: "turns/s", bar, found }, figures))
}

fn pairs(plan: Plan, folder: &Path, sync: Sync) -> Outcome<Ratio> {
    let runtime = Arc::new(tokio::runtime::Builder::new_multi_thread().enable_all().build()?);
    let file = |name: &str| folder.join(format!("{name}-{sync:?}.db"));
    let mut ours = distinct::Ours::open(runtime.clone(), &file("pairs"), sync)?;
    let mut base = distinct::Bare::open(runtime, &file("pairs-raw"), sync)?;
    let found = compare(&mut ours, &mut base, plan)?;
    ours.close()?;
    base.close()?;
    let (what, bar) = match sync {
        Sync::Full => ("lock + release of 64 tasks, a name each, sync=full", Some(Bar::AtLeast(0.8))),
        Sync::Normal => ("lock + release of 64 tasks, a name each, sync=normal", None),
    };
    Ok(Ratio { what, against: "the bare statements in groups of up to 64", unit: "pairs/s", bar, found })
}

fn hand_over(plan: Plan, folder: &Path, paced: bool) -> Outcome<Ratio> {
    let file = |name: &str| folder.join(format!("{name}-{paced}.db"));
    let mut ours = handover::Ours::start(&file("ball"))?;
    let mut base = handover::Bare::create(&file("ball-raw"), paced)?;
    let found = compare(&mut ours, &mut base, plan)?;
    let against = match paced {
        true => "the two bare commits at the same pace",
        false => "the two bare commits without rest",
    };
    // Met or not, it is told against both: which of the two raw pairs is the fair one can be argued.
    let bar = Some(Bar::AtMost(3.0));
    Ok(Ratio { what: "hand-over between two processes, sync=full", against, unit: "µs p50", bar, found })
}

/// The hidden mode of the process that waits for its turn.
pub fn another(path: &Path, length: Duration) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { local::another(&keeper(path, Sync::Full).await?, length).await })
}
