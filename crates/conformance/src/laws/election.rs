//! Elections: one leads, the others can see who and what it proclaims.

use lockkeeper_core::store::Keep;
use lockkeeper_core::{ErrorKind, kinds::Leader};

use super::{SOON, leave, until_standing};
use crate::{Outcome, World};

/// Asks an observer until a leader proclaims this.
async fn until_proclaimed(observer: &mut lockkeeper_core::kinds::Observer, note: &[u8]) -> Leader {
    let seen = async {
        loop {
            match observer.next().await {
                Ok(Some(leader)) if leader.note == note => return leader,
                Ok(_) => {}
                Err(error) => assert!(error.is_transient(), "{error:?}"),
            }
        }
    };
    tokio::time::timeout(SOON, seen).await.expect("it is seen")
}

/// One leads; when it resigns the next does, with a greater token; an observer sees both.
pub async fn one_leads_and_the_others_see_it(world: World) -> Outcome {
    let (one, other, name) = (world.keeper().await, world.keeper().await, world.name());
    let mut observer = world.keeper().await.election(name.as_str()).observe().expect("a name");
    let first = one.election(name.as_str()).note("first").wait(SOON).campaign().await.expect("it leads");
    assert!(other.election(name.as_str()).try_campaign().await.expect("an answer").is_none());
    let next = other.election(name.as_str()).note("second").wait(SOON * 2);
    let next = tokio::spawn(async move { next.campaign().await });
    let seen = until_proclaimed(&mut observer, b"first").await;
    assert_eq!((seen.token, seen.owner.pid()), (first.token(), std::process::id()));
    until_standing(&world.store().await, &name, 2, SOON).await;
    drop(first);
    let second = next.await.expect("a task").expect("it leads");
    let seen_next = until_proclaimed(&mut observer, b"second").await;
    assert_eq!(seen_next.token, second.token());
    assert!(seen_next.token > seen.token || seen.token.is_none());
    drop(second);
    let nobody = async { while !matches!(observer.next().await, Ok(None)) {} };
    tokio::time::timeout(SOON, nobody).await.expect("nobody leads");
    Ok(())
}

/// What the leader proclaims anew is seen, under the same token.
pub async fn a_proclamation_is_seen(world: World) -> Outcome {
    let (keeper, name) = (world.keeper().await, world.name());
    let election = keeper.election(name.as_str()).note("ready").wait(SOON);
    let mut observer = world.keeper().await.election(name.as_str()).observe().expect("a name");
    let mut leads = election.campaign().await.expect("it leads");
    until_proclaimed(&mut observer, b"ready").await;
    leads.proclaim("steady").await.expect("it leads");
    assert_eq!(until_proclaimed(&mut observer, b"steady").await.token, leads.token());
    Ok(())
}

/// C4: a leader that was put down finds out when it proclaims, and does not lead again by that.
pub async fn a_lost_leader_is_not_re_elected_silently(world: World) -> Outcome {
    let (keeper, store, name) = (world.keeper().await, world.store().await, world.name());
    let mut leads = keeper.election(name.as_str()).wait(SOON).campaign().await.expect("it leads");
    leave(&store, &name, leads.claim_id(), Keep::Nothing).await;
    assert_eq!(leads.proclaim("still here").await.expect_err("it does not lead").kind(), ErrorKind::Lost);
    assert!(!leads.is_held());
    drop(leads);
    until_standing(&store, &name, 0, SOON).await;
    Ok(())
}
