//! Circles of owners that wait for each other are named, and nothing else is.

use std::time::Duration;

use lockkeeper_core::deadlock::Circle;
use lockkeeper_core::{Hold, Keeper, Name, Owner, Result};
use tokio::task::JoinHandle;

use super::{SOON, release, until_standing};
use crate::{Outcome, World};

/// The circles that these locks are part of; others may be looking at the same store.
async fn circles(keeper: &Keeper, names: &[&Name]) -> Vec<Circle> {
    loop {
        match keeper.deadlocks().await {
            Err(error) if error.is_transient() => {}
            circles => {
                let ours = |circle: &Circle| circle.claims.iter().any(|stuck| names.contains(&&stuck.name));
                return circles.expect("an answer").into_iter().filter(ours).collect();
            }
        }
    }
}

async fn take(keeper: &Keeper, name: &Name, owner: &Owner) -> Hold {
    keeper.mutex(name.as_str()).owner(owner).wait(SOON).lock().await.expect("a lock")
}

fn waiting(keeper: &Keeper, name: &Name, owner: &Owner) -> JoinHandle<Result<Hold>> {
    let mutex = keeper.mutex(name.as_str()).owner(owner).wait(SOON * 3);
    tokio::spawn(async move { mutex.lock().await })
}

/// Two owners that take two mutexes crosswise are found, each with the claim it waits with; when one leaves the line, the
/// other one comes in and nothing is found.
pub async fn a_circle_is_named(world: World) -> Outcome {
    let (keeper, other, store) = (world.keeper().await, world.keeper().await, world.store().await);
    let (x, y) = (world.name(), world.name());
    let (ann, ben) = (Owner::new("ann").expect("an owner"), Owner::new("ben").expect("an owner"));
    let (held_x, held_y) = (take(&keeper, &x, &ann).await, take(&other, &y, &ben).await);
    let ann_waits = waiting(&keeper, &y, &ann);
    until_standing(&store, &y, 2, SOON).await;
    assert_eq!(circles(&keeper, &[&x, &y]).await, [], "one that waits is no circle yet");

    let ben_waits = waiting(&other, &x, &ben);
    until_standing(&store, &x, 2, SOON).await;
    let found = circles(&keeper, &[&x, &y]).await;
    assert_eq!(found.len(), 1, "{found:?}");
    let mut seen: Vec<_> = found[0].claims.iter().map(|stuck| (stuck.owner.id(), &stuck.name)).collect();
    let mut expected = [(ann.id(), &y), (ben.id(), &x)];
    seen.sort();
    expected.sort();
    assert_eq!(seen, expected);
    for stuck in &found[0].claims {
        let line = super::view(&store, &stuck.name).await.expect("a line");
        assert_eq!(line.claims[1].id, stuck.waiting, "the one that waits is named, not the one that holds");
    }

    ben_waits.abort();
    until_standing(&store, &x, 1, SOON).await;
    assert_eq!(circles(&keeper, &[&x, &y]).await, []);
    release(held_y).await;
    release(ann_waits.await.expect("a task").expect("it comes in")).await;
    release(held_x).await;
    Ok(())
}

/// Owners that wait in one line, named or not, are no circle.
pub async fn a_line_is_no_circle(world: World) -> Outcome {
    let (keeper, store, name) = (world.keeper().await, world.store().await, world.name());
    let owners = ["one", "two", "three"].map(|label| Owner::new(label).expect("an owner"));
    let held = take(&keeper, &name, &owners[0]).await;
    let rest = [waiting(&keeper, &name, &owners[1]), waiting(&keeper, &name, &owners[2])];
    let unnamed = keeper.mutex(name.as_str()).fair().wait(Duration::from_secs(60));
    let world_is_fifo = world.profile().await.order == lockkeeper_core::store::Order::Fifo;
    let unnamed = world_is_fifo.then(|| tokio::spawn(async move { unnamed.lock().await }));
    until_standing(&store, &name, 3 + usize::from(world_is_fifo), SOON).await;
    assert_eq!(circles(&keeper, &[&name]).await, []);
    for waiter in rest.into_iter().chain(unnamed) {
        waiter.abort();
    }
    release(held).await;
    Ok(())
}
