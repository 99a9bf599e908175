//! Many at once on one cell, by both ways: nothing is lost, nothing is done twice.

use std::time::Duration;

use lockkeeper_conformance::{World, judge, laws};
use lockkeeper_core::cell::{CellAction, CellOp, CellReply};
use lockkeeper_core::store::{SharedStore, Store};
use lockkeeper_redis::Cells;
use tokio::task::JoinSet;

use super::{name, open, port};

const TASKS: u64 = 32;
const EACH: u64 = 20;
/// Far longer than it takes: whoever waits for ever is found.
const LONG: Duration = Duration::from_secs(60);

async fn update(store: &dyn Store, cell: &lockkeeper_core::Name, action: CellAction) -> CellReply {
    let reply = tokio::time::timeout(LONG, store.update(cell, &CellOp::new(action))).await;
    reply.expect("it does not take so long").expect("an answer")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_counter_that_many_change_at_once_ends_exact() {
    let Some(port) = port() else { return };
    // The odd one needs all 64 bits, so that an inexact sum shows.
    let large = (1 << 60) + 1;
    for ways in [[Cells::Script; 2], [Cells::Watch; 2], [Cells::Script, Cells::Watch]] {
        let stores = [open(port, ways[0]).await, open(port, ways[1]).await];
        let cell = name("counter");
        update(&*stores[0], &cell, CellAction::Add { by: large }).await;
        let mut tasks = JoinSet::new();
        for task in 0..TASKS {
            let (store, cell) = (stores[task as usize % 2].clone(), cell.clone());
            tasks.spawn(async move {
                let mut taken = 0;
                for turn in 0..EACH {
                    update(&*store, &cell, CellAction::Add { by: 3 }).await;
                    let take = CellAction::Take { by: 1 + turn % 2, floor: large };
                    match update(&*store, &cell, take).await {
                        CellReply::Number { .. } => taken += 1 + turn % 2,
                        CellReply::TooLow { .. } => {}
                        other => panic!("{other:?}"),
                    }
                }
                taken
            });
        }
        let taken: u64 = tasks.join_all().await.into_iter().sum();
        let left = large.checked_add_unsigned(TASKS * EACH * 3 - taken).expect("it fits");
        let read = stores[1].read(&cell).await.expect("an answer").expect("a number");
        assert_eq!(String::from_utf8(read.value).expect("text"), left.to_string(), "{ways:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_put_that_wants_a_version_loses_no_update_of_the_other_way() {
    let Some(port) = port() else { return };
    let stores = [open(port, Cells::Script).await, open(port, Cells::Watch).await];
    let cell = name("optimistic");
    let mut tasks = JoinSet::new();
    for task in 0..16 {
        let (store, cell) = (stores[task % 2].clone(), cell.clone());
        tasks.spawn(async move {
            let mut versions = Vec::new();
            while versions.len() < 15 {
                let read = tokio::time::timeout(LONG, store.read(&cell)).await;
                let read = read.expect("it does not take so long").expect("an answer");
                let (count, version) = match read {
                    Some(read) => (String::from_utf8(read.value).unwrap().parse::<u32>().unwrap(), read.version),
                    None => (0, 0),
                };
                let value = (count + 1).to_string().into_bytes();
                match update(&*store, &cell, CellAction::Put { value, if_version: Some(version) }).await {
                    CellReply::Done { version } => versions.push(version),
                    CellReply::Conflict { .. } => {}
                    other => panic!("{other:?}"),
                }
            }
            versions
        });
    }
    let mut versions = tasks.join_all().await.concat();
    let writes = versions.len();
    versions.sort_unstable();
    versions.dedup();
    assert_eq!((versions.len(), writes), (16 * 15, 16 * 15), "no version twice");
    let last = stores[0].read(&cell).await.expect("an answer").expect("a value");
    assert_eq!((last.value, last.version), (b"240".to_vec(), versions[239]));
}

/// The optimistic way in front of the laws that all stores keep; the scripts are there in the suite of all.
#[test]
fn the_laws_of_cells_hold_by_watch() {
    let Some(port) = port() else { return };
    let world = || World::new("redis+watch", move || async move { open(port, Cells::Watch).await as SharedStore });
    macro_rules! hold {
        ($($topic:ident: $($law:ident),+;)+) => {
            $($(judge(stringify!($topic), stringify!($law), world(), |world| Box::pin(laws::$topic::$law(world)));)+)+
        };
    }
    hold! {
        cells: a_put_wants_the_version_it_read, a_version_is_never_used_again, a_counter_does_not_oversell,
            a_number_is_raised_but_not_lowered, a_window_admits_its_limit, a_smooth_limit_refills,
            a_fence_keeps_a_stale_holder_out, a_cell_is_forgotten_when_its_time_is_over, cells_do_not_mix_their_kinds;
        optimistic: an_update_loses_nothing, a_fenced_update_by_a_late_holder_is_refused;
        limiter: a_limit_is_shared, waiting_for_a_limit_is_bounded;
    }
}
