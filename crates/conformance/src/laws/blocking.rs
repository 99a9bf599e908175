//! The laws of the mutex as threads see them, through `lockkeeper::blocking`, and each other kind once.
//!
//! Threads here are plain ones that no runtime knows; the law itself is async code, where blocking calls are refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lockkeeper::blocking::{Hold, Keeper, as_owner};
use lockkeeper::kinds::{Run, Swap};
use lockkeeper_core::store::{Keep, Sharing, StoreTime, Tokens};
use lockkeeper_core::{Effect, Error, ErrorKind, Owner};
use tokio::sync::oneshot;

use super::{SOON, standing, until_standing};
use crate::{Outcome, World};

async fn keeper(world: &World) -> Keeper {
    Keeper::around(world.keeper().await).expect("a blocking keeper")
}

/// Runs something on a thread that has nothing to do with any runtime.
async fn on_a_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, told) = oneshot::channel();
    std::thread::spawn(move || tell.send(work()).is_ok());
    told.await.expect("the thread did not panic")
}

/// Releases; one that was not confirmed counts, since it goes on in the background.
fn release(hold: Hold) {
    match hold.release() {
        Err(error) if error.effect() != Effect::Unknown => panic!("release: {error:?}"),
        _ => {}
    }
}

/// Two clients with two threads each: nobody is ever in together, and every token is greater.
pub async fn threads_never_hold_together(world: World) -> Outcome {
    const ROUNDS: u64 = 8;
    let name = world.name();
    let (inside, last, total) =
        (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let tokens = world.profile().await.tokens != Tokens::None;
    let mut threads = Vec::new();
    for keeper in [keeper(&world).await, keeper(&world).await] {
        for _ in 0..2 {
            let mutex = keeper.mutex(name.as_str()).wait(SOON * 4);
            let (inside, last, total) = (inside.clone(), last.clone(), total.clone());
            threads.push(on_a_thread(move || {
                for _ in 0..ROUNDS {
                    let hold = mutex.lock().expect("a lock");
                    assert!(!inside.swap(true, Ordering::SeqCst), "two hold at once");
                    std::thread::yield_now();
                    if tokens {
                        let token = hold.token().expect("a token").as_u64();
                        let before = last.swap(token, Ordering::SeqCst);
                        assert!(token > before, "token {token} after {before}");
                    }
                    assert!(hold.is_held());
                    total.fetch_add(1, Ordering::SeqCst);
                    inside.store(false, Ordering::SeqCst);
                    release(hold);
                }
            }));
        }
    }
    let threads: Vec<_> = threads.into_iter().map(tokio::spawn).collect();
    for thread in threads {
        thread.await.expect("a thread");
    }
    assert_eq!(total.load(Ordering::SeqCst), 4 * ROUNDS);
    until_standing(&world.store().await, &name, 0, SOON).await;
    Ok(())
}

/// A held lock is `None` to a thread that tries, and `Timeout` to one that waits, after its wait and not before.
pub async fn a_thread_waits_as_long_as_it_asked(world: World) -> Outcome {
    let (one, other, name) = (keeper(&world).await, keeper(&world).await, world.name());
    let lock = name.clone();
    on_a_thread(move || {
        let hold = one.mutex(lock.as_str()).try_lock().expect("an answer").expect("it is free");
        assert!(other.mutex(lock.as_str()).try_lock().expect("an answer").is_none());
        let (before, wait) = (Instant::now(), Duration::from_millis(150));
        let error = other.mutex(lock.as_str()).wait(wait).lock().expect_err("it is held");
        assert_eq!(error.kind(), ErrorKind::Timeout);
        assert!(before.elapsed() >= wait && before.elapsed() < SOON, "after {:?}", before.elapsed());
        release(hold);
        release(other.mutex(lock.as_str()).wait(SOON).lock().expect("it is free now"));
    })
    .await;
    until_standing(&world.store().await, &name, 0, SOON).await;
    Ok(())
}

/// C5: a release that worked says so; one of a lock that was not ours any more says that.
pub async fn a_release_by_a_thread_says_what_happened(world: World) -> Outcome {
    world.needs_every_call()?;
    let (keeper, name) = (keeper(&world).await, world.name());
    on_a_thread(move || {
        let mutex = keeper.mutex(name.as_str()).wait(SOON);
        mutex.lock().expect("a lock").release().expect("it was ours");
        let hold = mutex.lock().expect("a lock");
        let line = keeper.inspect(name.as_str()).expect("an answer").expect("a line");
        assert_eq!(line.claims[0].id, hold.claim_id());
        assert!(keeper.list(None, 1).expect("an answer").len() == 1 && keeper.ping().is_ok());
        keeper.break_claim(name.as_str(), hold.claim_id(), Keep::Nothing).expect("an answer");
        assert_eq!(hold.release().expect_err("it was broken").kind(), ErrorKind::Lost);
    })
    .await;
    Ok(())
}

/// C6: a hold is released when it is dropped, by a thread, in async code, and together with its keeper.
pub async fn a_hold_dropped_anywhere_is_released(world: World) -> Outcome {
    let (store, name) = (world.store().await, world.name());
    for inside_async in [false, true] {
        let mutex = keeper(&world).await.mutex(name.as_str()).wait(SOON);
        let hold = on_a_thread(move || mutex.lock().expect("a lock")).await;
        assert_eq!(standing(&store, &name).await, 1);
        match inside_async {
            true => drop(hold),
            false => on_a_thread(move || drop(hold)).await,
        }
        until_standing(&store, &name, 0, SOON).await;
    }
    Ok(())
}

/// C4: a thread is told of its loss, whether it asks, waits or left a function to be called.
pub async fn a_thread_is_told_of_its_loss(world: World) -> Outcome {
    let (keeper, name, lease) = (keeper(&world).await, world.name(), world.short_lease().await);
    let (tell, told) = oneshot::channel();
    on_a_thread(move || {
        let hold = keeper.mutex(name.as_str()).lease(lease).wait(SOON).lock().expect("a lock");
        assert!(hold.wait_lost(Duration::from_millis(20)).is_none());
        let inside = keeper.clone();
        hold.on_lost(move |why| {
            // It may block, and make blocking calls.
            let answered = inside.inspect("another/name");
            assert!(tell.send((why.to_string(), answered.map(|line| line.is_none()))).is_ok());
        });
        loop {
            match keeper.break_claim(name.as_str(), hold.claim_id(), Keep::Nothing) {
                Err(error) if error.is_transient() => {}
                done => break done.map(|_| ()).expect("an answer"),
            }
        }
        let why = hold.wait_lost(SOON).expect("it is told");
        assert!(why.to_string().contains(name.as_str()) && !hold.is_held());
    })
    .await;
    let (why, answered) = tokio::time::timeout(SOON, told).await.expect("it is called").expect("it was sent");
    assert!(why.contains("lost"), "{why}");
    assert!(answered.is_ok_and(|empty| empty) || world.is_flaky());
    Ok(())
}

/// C3: a thread that sleeps for two leases keeps its hold: nothing of its own is needed to renew it.
pub async fn a_sleeping_thread_keeps_its_hold(world: World) -> Outcome {
    let (one, other, name, lease) =
        (keeper(&world).await, keeper(&world).await, world.name(), world.short_lease().await);
    on_a_thread(move || {
        let hold = one.mutex(name.as_str()).lease(lease).wait(SOON).lock().expect("a lock");
        let first = hold.deadline();
        std::thread::sleep(lease * 2);
        assert!(hold.is_held() && hold.deadline() > first, "it was renewed meanwhile");
        assert!(other.mutex(name.as_str()).try_lock().expect("an answer").is_none());
        release(hold);
    })
    .await;
    Ok(())
}

/// Inside of async code a blocking call is an error with a hint, not a panic and not a stop; it changes nothing.
pub async fn a_blocking_call_in_async_code_is_refused(world: World) -> Outcome {
    let (keeper, store, name) = (keeper(&world).await, world.store().await, world.name());
    let mutex = keeper.mutex(name.as_str()).wait(SOON);
    let refused = [mutex.lock().map(|_| ()), keeper.ping(), keeper.cell(name.as_str()).put(b"x").map(|_| ())];
    for refused in refused.into_iter().chain([Keeper::connect("memory:").map(|_| ())]) {
        let error = refused.expect_err("it is refused");
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Unsupported, Effect::None));
        assert!(error.hint().is_some_and(|hint| hint.contains("async")), "{error:?}");
    }
    assert_eq!(standing(&store, &name).await, 0);

    // A thread of the runtime that is there to be blocked may.
    let hold = tokio::task::spawn_blocking(move || mutex.lock()).await.expect("a thread").expect("a lock");
    assert!(hold.is_held());
    assert_eq!(hold.release().expect_err("it is refused").kind(), ErrorKind::Unsupported);
    until_standing(&store, &name, 0, SOON).await; // in the background
    Ok(())
}

/// Closing tells the holds and frees their locks, here as there.
pub async fn a_closed_blocking_keeper_has_released(world: World) -> Outcome {
    let (keeper, store, name) = (keeper(&world).await, world.store().await, world.name());
    let lock = name.clone();
    on_a_thread(move || {
        let hold = keeper.mutex(lock.as_str()).wait(SOON).lock().expect("a lock");
        keeper.close().expect("it closes");
        assert!(hold.wait_lost(SOON).is_some());
        assert_eq!(keeper.mutex(lock.as_str()).try_lock().expect_err("it is closed").kind(), ErrorKind::Closed);
    })
    .await;
    assert_eq!(standing(&store, &name).await, 0);
    Ok(())
}

/// Every kind of lock does for a thread what it does for a task.
pub async fn every_lock_serves_threads(world: World) -> Outcome {
    let (keeper, name, profile) = (keeper(&world).await, world.name(), world.profile().await);
    on_a_thread(move || {
        let named = |topic: &str| format!("{name}/{topic}");
        if profile.sharing != Sharing::ExclusiveOnly {
            let prices = keeper.rwlock(&named("prices")).wait(SOON);
            let (one, two) = (prices.read().expect("a reader"), prices.read().expect("another"));
            assert!(prices.try_write().expect("an answer").is_none());
            release(one);
            release(two);
            let write = prices.write().expect("a writer");
            assert!(prices.try_read().expect("an answer").is_none());
            let (token, read) = (write.token(), write.downgrade().expect("a reader"));
            assert_eq!(read.token(), token);
            release(read);
            drop(prices.write().expect("a writer"));
        }
        if profile.sharing == Sharing::Permits {
            let workers = keeper.semaphore(&named("workers"), 3).wait(SOON);
            let two = workers.clone().permits(2).acquire().expect("two permits");
            assert!(workers.clone().permits(2).try_acquire().expect("an answer").is_none());
            release(workers.acquire().expect("the third"));
            release(two);
        }
        let both = keeper.multi([named("b").as_str(), named("a").as_str()]).wait(SOON).lock().expect("both");
        assert!(both.is_held() && both.tokens().len() == 2 && both.wait_lost(Duration::ZERO).is_none());
        assert!(keeper.mutex(&named("a")).try_lock().expect("an answer").is_none());
        both.release().or_else(unconfirmed).expect("they were ours");
        as_owner(&Owner::new("a thread").expect("an owner"), || {
            let outer = keeper.mutex(&named("again")).wait(SOON).lock().expect("a lock");
            release(keeper.mutex(&named("again")).wait(SOON).lock().expect("it comes in again"));
            assert!(outer.is_held());
        });
    })
    .await;
    Ok(())
}

fn unconfirmed(error: Error) -> Result<(), Error> {
    if error.effect() == Effect::Unknown { Ok(()) } else { Err(error) }
}

/// A thread leads, proclaims and resigns, and another one follows.
pub async fn a_thread_can_lead(world: World) -> Outcome {
    let (keeper, name) = (keeper(&world).await, world.name());
    on_a_thread(move || {
        let election = keeper.election(name.as_str()).note("one").wait(SOON);
        let mut observer = election.observe().expect("an observer");
        let mut next = move || loop {
            match observer.next_within(SOON) {
                Err(error) if error.is_transient() => {}
                next => return next.expect("news"),
            }
        };
        assert_eq!(next(), None);
        let mut leadership = election.campaign().expect("a leader");
        assert!(election.try_campaign().expect("an answer").is_none());
        assert_eq!(next().expect("a leader").note, b"one");
        leadership.proclaim("two").expect("it leads");
        assert_eq!(next().expect("a leader").note, b"two");
        leadership.resign().or_else(unconfirmed).expect("it led");
        assert_eq!(next(), None);
        let mut observer = election.observe().expect("an observer");
        assert_eq!(observer.next().expect("an answer"), None);
        let quiet = observer.next_within(Duration::from_millis(20)).expect_err("nothing changes");
        assert!(quiet.kind() == ErrorKind::Timeout || quiet.is_transient());
    })
    .await;
    Ok(())
}

/// Cells, counters, limiters and jobs that are done once, for threads. Work cannot be cancelled, but what it did under a
/// lost lock is not recorded.
pub async fn values_serve_threads(world: World) -> Outcome {
    world.needs_every_call()?;
    let (keeper, name, profile) = (keeper(&world).await, world.name(), world.profile().await);
    on_a_thread(move || {
        let named = |topic: &str| format!("{name}/{topic}");
        let cell = keeper.cell(&named("cell"));
        let version = cell.put(b"a").expect("it is set");
        let suffix = String::from("b");
        let updated = cell.update(|old| Some([old.expect("a value"), suffix.as_bytes()].concat())).expect("an update");
        assert_eq!(updated.value.as_deref(), Some(&b"ab"[..]));
        assert!(matches!(cell.compare_and_set(version, b"c").expect("an answer"), Swap::Conflict(Some(_))));
        assert!(matches!(cell.compare_and_remove(updated.version).expect("an answer"), Swap::Done(_)));
        cell.remove().expect("an answer");
        assert!(cell.get().expect("an answer").is_none());
        let stock = keeper.counter(&named("stock"));
        assert_eq!((stock.add(2).expect("two"), stock.raise_to(1).expect("an answer")), (2, 2));
        assert_eq!((stock.take(2).expect("an answer"), stock.take(1).expect("an answer")), (Some(0), None));
        assert_eq!(stock.get().expect("an answer"), 0);
        if profile.time == StoreTime::Store {
            let mails = keeper.limiter(&named("mails"), 1, Duration::from_secs(60));
            mails.take(1, SOON).expect("the first one");
            assert!(!mails.try_take(1).expect("an answer").is_admitted());
        }
        if profile.tokens == Tokens::None {
            return;
        }
        let hold = keeper.mutex(&named("fence")).wait(SOON).lock().expect("a lock");
        let fenced = keeper.cell(&named("fenced")).fenced(&hold).expect("a token");
        assert!(fenced.read().expect("an answer").is_none());
        fenced.write(Some(b"new")).expect("it is ours");
        hold.release().expect("it was ours");
        once(&keeper, &named("once"));
    })
    .await;
    Ok(())
}

fn once(keeper: &Keeper, key: &str) {
    let job = keeper.once(key).wait(SOON);
    let lost = job.run(|hold| {
        assert!(hold.is_held());
        keeper.break_claim(key, hold.claim_id(), Keep::Nothing).expect("an answer");
        // It goes on to its end, but somebody else may have run meanwhile.
        assert_eq!(job.run(|_| Ok::<_, Error>(b"theirs".to_vec())).expect("a run"), Run::Ran(b"theirs".to_vec()));
        Ok::<_, Error>(b"ours".to_vec())
    });
    assert_eq!(lost.expect_err("it is lost").kind(), ErrorKind::Lost);
    assert_eq!(job.recorded().expect("an answer").as_deref(), Some(&b"theirs"[..]));
    let again = job.run(|_| Err(Error::bug("it does not run again"))).expect("a record");
    assert_eq!(again, Run::Recorded(b"theirs".to_vec()));
}
