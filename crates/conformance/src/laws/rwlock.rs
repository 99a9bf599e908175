//! The read-write lock as a user sees it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use lockkeeper_core::store::Sharing;
use lockkeeper_core::{ErrorKind, Hold, Owner};
use tokio::task::JoinSet;

use super::{SOON, release, until_standing};
use crate::{Outcome, World};

async fn needed(world: &World) -> Outcome {
    world.needs(&world.profile().await.sharing, &[Sharing::Pairwise, Sharing::Permits])
}

/// Readers are in together, a writer never with anybody.
pub async fn a_writer_is_alone(world: World) -> Outcome {
    needed(&world).await?;
    let (name, inside) = (world.name(), Arc::new(AtomicI32::new(0)));
    let mut tasks = JoinSet::new();
    for task in 0..6 {
        let (keeper, name, inside) = (world.keeper().await, name.clone(), inside.clone());
        tasks.spawn(async move {
            for round in 0..6 {
                let lock = keeper.rwlock(name.as_str()).wait(SOON * 4);
                if (task + round) % 3 == 0 {
                    let hold = lock.write().await.expect("a lock");
                    assert_eq!(inside.swap(-1, Ordering::SeqCst), 0, "a writer is alone");
                    tokio::task::yield_now().await;
                    assert_eq!(inside.swap(0, Ordering::SeqCst), -1, "a writer stays alone");
                    release(hold.into()).await;
                } else {
                    let hold = lock.read().await.expect("a lock");
                    assert!(inside.fetch_add(1, Ordering::SeqCst) >= 0, "no writer with readers");
                    tokio::task::yield_now().await;
                    assert!(inside.fetch_sub(1, Ordering::SeqCst) >= 1, "no writer came to readers");
                    release(hold).await;
                }
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("a task");
    }
    Ok(())
}

/// Readers that come after a waiting writer wait behind it: writers do not starve.
pub async fn a_waiting_writer_is_not_overtaken(world: World) -> Outcome {
    needed(&world).await?;
    let (keeper, store, name) = (world.keeper().await, world.store().await, world.name());
    let lock = keeper.rwlock(name.as_str()).wait(SOON * 2);
    let first = lock.read().await.expect("a lock");
    let writes = lock.clone();
    let writer = tokio::spawn(async move { writes.write().await });
    until_standing(&store, &name, 2, SOON).await;
    assert!(lock.try_read().await.expect("an answer").is_none(), "a reader does not pass a waiting writer");
    let reads = lock.clone();
    let reader = tokio::spawn(async move { reads.read().await });
    until_standing(&store, &name, 3, SOON).await;
    release(first).await;
    let write = writer.await.expect("a task").expect("a lock");
    assert!(!reader.is_finished(), "the reader waits for the writer");
    release(write.into()).await;
    release(reader.await.expect("a task").expect("a lock")).await;
    Ok(())
}

/// A writer becomes a reader: readers come in, no writer got in between, the token is the same.
pub async fn a_downgrade_lets_no_writer_in(world: World) -> Outcome {
    needed(&world).await?;
    let (keeper, name) = (world.keeper().await, world.name());
    let lock = keeper.rwlock(name.as_str()).wait(SOON);
    let write = lock.write().await.expect("a lock");
    let token = write.token();
    let read = write.downgrade().await.expect("it is held");
    assert_eq!(read.token(), token);
    let other = lock.read().await.expect("readers share");
    assert!(lock.try_write().await.expect("an answer").is_none());
    release(other).await;
    release(read).await;
    let writer: Hold = lock.write().await.expect("free again").into();
    release(writer).await;
    Ok(())
}

/// An owner that reads and asks to write is refused at once, instead of waiting for itself.
pub async fn a_reader_does_not_become_a_writer(world: World) -> Outcome {
    needed(&world).await?;
    let (keeper, name, owner) = (world.keeper().await, world.name(), Owner::new("reader").expect("an owner"));
    let lock = keeper.rwlock(name.as_str()).owner(&owner).wait(SOON);
    let read = lock.read().await.expect("a lock");
    assert_eq!(lock.write().await.expect_err("it is refused").kind(), ErrorKind::Mismatch);
    assert!(read.is_held());
    release(read).await;
    let write = lock.write().await.expect("free");
    let inner = lock.read().await.expect("a writer may read");
    assert_eq!(inner.token(), write.token());
    release(inner).await;
    release(write.into()).await;
    Ok(())
}
