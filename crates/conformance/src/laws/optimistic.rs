//! The cell as a user sees it: updates that lose nothing, and a fence that late holders do not pass.

use lockkeeper_core::store::{Keep, Tokens};
use lockkeeper_core::{ErrorKind, kinds::Swap};
use tokio::task::JoinSet;

use super::{SOON, leave};
use crate::{Outcome, World};

/// Eight update one cell at the same time: every update counts, and lost tries are told.
pub async fn an_update_loses_nothing(world: World) -> Outcome {
    world.needs_every_call()?;
    let (name, keeper) = (world.name(), world.keeper().await);
    let mut tasks = JoinSet::new();
    for _ in 0..8 {
        let cell = world.keeper().await.cell(name.as_str());
        tasks.spawn(async move {
            for _ in 0..5 {
                let updated = cell.update(|old| Some([old.unwrap_or_default(), b"x"].concat())).await;
                assert!(updated.expect("an answer").version > 0);
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("a task");
    }
    let cell = keeper.cell(name.as_str());
    let found = cell.get().await.expect("an answer").expect("a value");
    assert_eq!(found.value.len(), 40);
    assert!(matches!(cell.compare_and_set(found.version + 1, b"").await.expect("an answer"), Swap::Conflict(Some(_))));
    let gone = cell.update(|_| None).await.expect("an answer");
    assert_eq!((gone.value, gone.version), (None, 0));
    assert_eq!(cell.get().await.expect("an answer"), None);
    Ok(())
}

/// A holder that does not know yet that its lock has passed on can neither write nor read to write.
pub async fn a_fenced_update_by_a_late_holder_is_refused(world: World) -> Outcome {
    world.needs_every_call()?;
    world.needs(&world.profile().await.tokens, &[Tokens::Monotone, Tokens::Floored])?;
    let (one, other, store, name) = (world.keeper().await, world.keeper().await, world.store().await, world.name());
    let late = one.mutex(name.as_str()).lock().await.expect("a lock");
    let late_cell = one.cell(name.as_str()).fenced(&late).expect("it has a token");
    assert_eq!(late_cell.read().await.expect("it is the newest"), None);
    late_cell.write(Some(b"1")).await.expect("it is the newest");
    // The lock passes on without the first holder noticing.
    leave(&store, &name, late.claim_id(), Keep::Nothing).await;
    let newer = other.mutex(name.as_str()).wait(SOON).lock().await.expect("a lock");
    let newer_cell = other.cell(name.as_str()).fenced(&newer).expect("it has a token");
    let read = newer_cell.read().await.expect("it is the newest").expect("a value");
    // The newer one has read, not yet written: exactly here a fence on writes alone would lose an update.
    assert_eq!(late_cell.write(Some(b"late")).await.expect_err("it is late").kind(), ErrorKind::Lost);
    assert_eq!(late_cell.read().await.expect_err("it is late").kind(), ErrorKind::Lost);
    newer_cell.write(Some(&[&read.value[..], b"+1"].concat())).await.expect("it is the newest");
    assert_eq!(other.cell(name.as_str()).get().await.expect("an answer").expect("a value").value, b"1+1");
    drop((late, newer));
    Ok(())
}
