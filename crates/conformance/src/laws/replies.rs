//! Requests and replies that get lost: a retry is the same claim, and *unknown* never becomes *no*.

use std::time::Duration;

use lockkeeper_core::cell::{CellAction, CellOp};
use lockkeeper_core::layers::{Retry, wrap};
use lockkeeper_core::store::{Keep, Left};
use lockkeeper_core::{Effect, ErrorKind};

use super::{SOON, hold, standing, until_standing};
use crate::meddle::{Deed, Meddle};
use crate::{Outcome, World};

fn loses(word: &'static str, deed: Deed, up_to: usize) -> Meddle {
    Meddle::new(move |call, nth| if call.word() == word && nth <= up_to { deed } else { Deed::Pass })
}

/// C1: the store acted, the reply was lost: the retry finds itself, and one claim stands. Given up, none does.
pub async fn a_lost_reply_leaves_no_ghost(world: World) -> Outcome {
    let store = world.store().await;
    for deed in [Deed::LoseReply, Deed::LoseRequest] {
        for lost in 1..=3 {
            let name = world.name();
            let keeper = world.builder().with_store(wrap(world.store().await, loses("enter", deed, lost)));
            let hold = keeper.mutex(name.as_str()).wait(SOON).lock().await.expect("a lock");
            assert_eq!(standing(&store, &name).await, 1);
            drop(hold);
            until_standing(&store, &name, 0, SOON).await;
        }
        let name = world.name();
        let keeper = world.builder().attempts(2).with_store(wrap(world.store().await, loses("enter", deed, 1_000)));
        let error = keeper.mutex(name.as_str()).try_lock().await.expect_err("no answer ever comes");
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::Unknown));
        let waited = keeper.mutex(name.as_str()).wait(Duration::from_millis(50)).lock().await;
        waited.expect_err("no answer ever comes");
        until_standing(&store, &name, 0, SOON).await;
    }
    Ok(())
}

/// C12: a leave whose first reply was lost finds nothing; that is *unknown*, and a hold in time takes it as done.
pub async fn a_retried_leave_is_never_a_no(world: World) -> Outcome {
    world.needs_every_call()?;
    let (name, claim) = (world.name(), world.claim());
    let lossy = wrap(world.store().await, loses("leave", Deed::LoseReply, 1));
    let store = wrap(lossy, Retry { attempts: 3, pause: Duration::from_millis(1) });
    hold(&store, &name, &claim).await;
    assert_eq!(store.leave(&name, claim.id, Keep::Nothing).await.expect("an answer"), Left::Unknown);

    let keeper = world.builder().with_store(wrap(world.store().await, loses("leave", Deed::LoseReply, 1)));
    let held = keeper.mutex(name.as_str()).wait(SOON).lock().await.expect("a lock");
    held.release().await.expect("only its own first attempt can have released it");

    let silent =
        world.builder().attempts(2).with_store(wrap(world.store().await, loses("leave", Deed::LoseRequest, 3)));
    let held = silent.mutex(name.as_str()).wait(SOON).lock().await.expect("a lock");
    let error = held.release().await.expect_err("it was not confirmed");
    assert_eq!(error.effect(), Effect::Unknown);
    until_standing(&world.store().await, &name, 0, SOON).await;
    Ok(())
}

/// C1: however often the question is repeated, one token is delivered, and it is the one the store shows.
pub async fn a_retry_delivers_one_token(world: World) -> Outcome {
    let (store, name) = (world.store().await, world.name());
    let keeper = world.builder().with_store(wrap(world.store().await, loses("enter", Deed::LoseReply, 2)));
    let hold = keeper.mutex(name.as_str()).wait(SOON).lock().await.expect("a lock");
    let shown = super::view(&store, &name).await.expect("a line");
    assert_eq!(shown.claims.len(), 1);
    assert_eq!((shown.claims[0].id, shown.claims[0].token), (hold.claim_id(), hold.token()));
    drop(hold);
    Ok(())
}

/// `Add` is not repeated when its reply was lost, since it may have been done; `Max` is, since twice is once.
pub async fn a_counter_is_not_repeated_blindly(world: World) -> Outcome {
    world.needs_every_call()?;
    let (plain, cell) = (world.store().await, world.name());
    let lossy = loses("update", Deed::LoseReply, 1);
    let store = wrap(wrap(world.store().await, lossy.clone()), Retry { attempts: 5, pause: Duration::from_millis(1) });
    let error = store.update(&cell, &CellOp::new(CellAction::Add { by: 1 })).await.expect_err("it is not known");
    assert_eq!(error.effect(), Effect::Unknown);
    assert_eq!(lossy.count("update"), 1);
    assert_eq!(plain.read(&cell).await.expect("an answer").expect("a value").value, b"1");

    let lossy = loses("update", Deed::LoseReply, 1);
    let store = wrap(wrap(world.store().await, lossy.clone()), Retry { attempts: 5, pause: Duration::from_millis(1) });
    store.update(&cell, &CellOp::new(CellAction::Max { at_least: 9 })).await.expect("the retry is answered");
    assert_eq!(lossy.count("update"), 2);
    Ok(())
}
