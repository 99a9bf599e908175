//! Once: at most one recorded run per key.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use lockkeeper_core::kinds::Run;
use lockkeeper_core::store::{Keep, Tokens};
use lockkeeper_core::{Error, ErrorKind};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::{SOON, leave, until_standing};
use crate::{Outcome, World};

/// A record behind a fence needs tokens; single answers need every call.
async fn needed(world: &World) -> Outcome {
    world.needs_every_call()?;
    world.needs(&world.profile().await.tokens, &[Tokens::Monotone, Tokens::Floored])
}

/// Six come at once: one runs, and all get its result.
pub async fn a_key_is_run_once(world: World) -> Outcome {
    needed(&world).await?;
    let (name, runs) = (world.name(), Arc::new(AtomicU32::new(0)));
    let mut tasks = JoinSet::new();
    for _ in 0..6 {
        let (keeper, name, runs) = (world.keeper().await, name.clone(), runs.clone());
        tasks.spawn(async move {
            let once = keeper.once(name.as_str()).wait(SOON * 2);
            let run = once.run(|_| async move {
                runs.fetch_add(1, Ordering::SeqCst);
                Ok::<_, Error>(b"done".to_vec())
            });
            run.await.expect("an answer")
        });
    }
    let mut ran = 0;
    while let Some(run) = tasks.join_next().await {
        match run.expect("a task") {
            Run::Ran(result) => {
                ran += 1;
                assert_eq!(result, b"done");
            }
            other => assert_eq!(other, Run::Recorded(b"done".to_vec())),
        }
    }
    assert_eq!((ran, runs.load(Ordering::SeqCst)), (1, 1));
    Ok(())
}

/// Those who come while it runs wait for the result, or skip.
pub async fn followers_wait_or_skip(world: World) -> Outcome {
    needed(&world).await?;
    let (keeper, other, name) = (world.keeper().await, world.keeper().await, world.name());
    let (started, finish) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tell, end, first) = (started.clone(), finish.clone(), keeper.once(name.as_str()));
    let running = tokio::spawn(async move {
        let work = |_: &lockkeeper_core::Hold| async move {
            tell.notify_one();
            end.notified().await;
            Ok::<_, Error>(Vec::new())
        };
        first.run(work).await
    });
    started.notified().await;
    let idle = |_: &lockkeeper_core::Hold| async { Ok::<_, Error>(b"never".to_vec()) };
    assert_eq!(other.once(name.as_str()).skip().run(idle).await.expect("an answer"), Run::Running);
    let follower = other.once(name.as_str()).wait(SOON);
    let follower = tokio::spawn(async move { follower.run(idle).await });
    until_standing(&world.store().await, &name, 2, SOON).await;
    finish.notify_one();
    assert_eq!(running.await.expect("a task").expect("an answer"), Run::Ran(Vec::new()));
    assert_eq!(follower.await.expect("a task").expect("an answer"), Run::Recorded(Vec::new()));
    Ok(())
}

/// Work that fails is not recorded, and can be done again, also by one who asked for never again.
pub async fn a_failed_run_is_not_recorded(world: World) -> Outcome {
    needed(&world).await?;
    let (keeper, name) = (world.keeper().await, world.name());
    let once = keeper.once(name.as_str()).never_again();
    let failed = once.run(|_| async { Err(Error::new(ErrorKind::Invalid, "the work failed")) }).await;
    assert_eq!(failed.expect_err("it failed").kind(), ErrorKind::Invalid);
    assert_eq!(once.recorded().await.expect("an answer"), None);
    let again = once.run(|_| async { Ok::<_, Error>(b"ok".to_vec()) }).await;
    assert_eq!(again.expect("an answer"), Run::Ran(b"ok".to_vec()));
    Ok(())
}

/// A run whose lock is gone dies unrecorded; it is taken again, or never if so asked.
pub async fn a_dead_run_is_taken_again_or_never(world: World) -> Outcome {
    needed(&world).await?;
    let (keeper, store) = (world.keeper().await, world.store().await);
    for never in [false, true] {
        let name = world.name();
        let mut once = keeper.once(name.as_str()).lease(world.short_lease().await);
        if never {
            once = once.never_again();
        }
        let (killer, lock) = (store.clone(), name.clone());
        let died = once.run(|hold| {
            let id = hold.claim_id();
            async move {
                leave(&killer, &lock, id, Keep::Nothing).await;
                std::future::pending::<Result<Vec<u8>, Error>>().await
            }
        });
        let died = tokio::time::timeout(SOON, died).await.expect("it is dropped");
        assert_eq!(died.expect_err("it died").kind(), ErrorKind::Lost);
        let again = once.run(|_| async { Ok::<_, Error>(b"again".to_vec()) }).await.expect("an answer");
        assert_eq!(again, if never { Run::Died } else { Run::Ran(b"again".to_vec()) });
    }
    Ok(())
}
