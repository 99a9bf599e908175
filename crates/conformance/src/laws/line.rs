//! What a line does: places, answers, names, and what people see of it.

use std::time::Duration;

use lockkeeper_core::store::{ClaimState, Keep, Left, Order, Page, Standing};
use lockkeeper_core::{ErrorKind, LockKind, Name, Patience};

use super::{enter, hold, leave, queue, renew, standing, view};
use crate::{Outcome, World};

/// C1: the same claim asked again is the same claim, with the same token and one place.
pub async fn enter_is_idempotent_by_claim_id(world: World) -> Outcome {
    let (store, lock, claim) = (world.store().await, world.name(), world.claim());
    let token = hold(&store, &lock, &claim).await;
    for _ in 0..3 {
        assert_eq!(hold(&store, &lock, &claim).await, token);
    }
    let waiting = world.claim();
    for _ in 0..3 {
        assert_eq!(queue(&store, &lock, &waiting).await, 1);
    }
    assert_eq!(standing(&store, &lock).await, 2);
    Ok(())
}

/// First come, first served, also for claims that ask again in another order.
pub async fn claims_are_served_in_order(world: World) -> Outcome {
    world.needs(&world.profile().await.order, &[Order::Fifo])?;
    let (store, lock) = (world.store().await, world.name());
    let claims: Vec<_> = (0..5).map(|_| world.claim()).collect();
    for claim in &claims {
        enter(&store, &lock, claim).await;
    }
    for (at, claim) in claims.iter().enumerate().rev() {
        match enter(&store, &lock, claim).await {
            Standing::Waiting { ahead, .. } => assert_eq!(ahead as usize, at),
            Standing::Held { .. } => assert_eq!(at, 0),
            other => panic!("{other:?}"),
        }
    }
    for (at, claim) in claims.iter().enumerate() {
        hold(&store, &lock, claim).await;
        for later in &claims[at + 1..] {
            queue(&store, &lock, later).await;
        }
        assert_eq!(leave(&store, &lock, claim.id, Duration::ZERO).await, Left::Released);
    }
    assert_eq!(standing(&store, &lock).await, 0);
    Ok(())
}

/// A claim that does not wait is refused and leaves no trace.
pub async fn an_impatient_claim_leaves_nothing_behind(world: World) -> Outcome {
    let (store, lock, claim) = (world.store().await, world.name(), world.claim());
    hold(&store, &lock, &claim).await;
    let impatient = lockkeeper_core::Claim { patience: Patience::Now, ..world.claim() };
    assert!(matches!(enter(&store, &lock, &impatient).await, Standing::Refused { .. }));
    assert_eq!(standing(&store, &lock).await, 1);
    leave(&store, &lock, claim.id, Duration::ZERO).await;
    hold(&store, &lock, &impatient).await;
    Ok(())
}

/// A question that must not make a claim does not: absent it is refused, present it is answered.
pub async fn asking_alone_makes_no_claim(world: World) -> Outcome {
    let (store, lock) = (world.store().await, world.name());
    let mut claim = lockkeeper_core::Claim { patience: Patience::Present, ..world.claim() };
    assert!(matches!(enter(&store, &lock, &claim).await, Standing::Refused { .. }));
    assert_eq!(standing(&store, &lock).await, 0);
    claim.patience = Patience::Queue;
    let token = hold(&store, &lock, &claim).await;
    claim.patience = Patience::Present;
    assert_eq!(hold(&store, &lock, &claim).await, token);
    Ok(())
}

/// C5: nobody frees somebody else's lock.
pub async fn a_leave_compares_the_claim(world: World) -> Outcome {
    let (store, lock, claim) = (world.store().await, world.name(), world.claim());
    hold(&store, &lock, &claim).await;
    let other = store.leave(&lock, world.claim().id, Keep::Nothing).await;
    assert!(!matches!(other, Ok(Left::Released)), "{other:?}");
    assert_eq!(queue(&store, &lock, &world.claim()).await, 1);
    hold(&store, &lock, &claim).await;
    Ok(())
}

/// C5: leaving twice is not an error, and says so.
pub async fn leaving_twice_is_an_answer(world: World) -> Outcome {
    let (store, lock, claim) = (world.store().await, world.name(), world.claim());
    hold(&store, &lock, &claim).await;
    assert_eq!(leave(&store, &lock, claim.id, Duration::ZERO).await, Left::Released);
    if !world.is_flaky() {
        assert_eq!(leave(&store, &lock, claim.id, Duration::ZERO).await, Left::NotHeld);
        let never = world.name();
        assert_eq!(leave(&store, &never, claim.id, Duration::ZERO).await, Left::NotHeld);
    }
    Ok(())
}

/// A claim that leaves with `keep` is out, but the name stays taken for so long and no longer.
pub async fn a_kept_name_stays_taken(world: World) -> Outcome {
    let (store, lock, claim) = (world.store().await, world.name(), world.claim());
    hold(&store, &lock, &claim).await;
    let keep = Duration::from_millis(700);
    let before = std::time::Instant::now();
    assert_eq!(leave(&store, &lock, claim.id, keep).await, Left::Released);
    assert_eq!(renew(&store, &lock, claim.id, keep).await, lockkeeper_core::store::Renewal::Gone);
    if let Some(view) = view(&store, &lock).await {
        assert_eq!(view.claims[0].state, ClaimState::Leaving);
    }
    let next = world.claim();
    while !matches!(enter(&store, &lock, &next).await, Standing::Held { .. }) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(before.elapsed() >= keep, "in after {:?}, kept for {keep:?}", before.elapsed());
    Ok(())
}

/// A store whose moments are whole milliseconds must not cut one off: asked without a pause, it is never early.
pub async fn a_kept_name_is_not_free_early(world: World) -> Outcome {
    let (store, keep) = (world.store().await, Duration::from_millis(11));
    for _ in 0..40 {
        let (lock, claim, next) = (world.name(), world.claim(), world.claim());
        hold(&store, &lock, &claim).await;
        let before = std::time::Instant::now();
        leave(&store, &lock, claim.id, keep).await;
        while !matches!(enter(&store, &lock, &next).await, Standing::Held { .. }) {
            tokio::task::yield_now().await;
        }
        assert!(before.elapsed() >= keep, "in after {:?}, kept for {keep:?}", before.elapsed());
    }
    Ok(())
}

/// What a claim says of itself is shown, and asking again with another note changes it.
pub async fn a_note_is_shown_and_can_be_changed(world: World) -> Outcome {
    let (store, lock, mut claim) = (world.store().await, world.name(), world.claim());
    for note in [&b""[..], b"first", &[0, 255, 10, 13], &vec![7; 4096]] {
        claim.note = note.to_vec();
        hold(&store, &lock, &claim).await;
        let view = view(&store, &lock).await.expect("a line");
        assert_eq!(view.claims[0].note, note);
        assert_eq!(view.claims[0].owner, claim.owner);
    }
    Ok(())
}

/// Names are bytes: case and composition make other names.
pub async fn names_are_compared_as_bytes(world: World) -> Outcome {
    let store = world.store().await;
    let base = world.name();
    for (one, other) in [("k", "K"), ("\u{e9}", "e\u{301}"), ("a-1", "a_1"), ("10", "1e1"), ("ß", "ss")] {
        for text in [one, other] {
            let name = Name::new(&format!("{base}/{text}")).expect("a name");
            hold(&store, &name, &world.claim()).await;
        }
    }
    Ok(())
}

/// A lock on `a` has nothing to do with a lock on `a/b`.
pub async fn a_name_is_not_blocked_by_a_longer_one(world: World) -> Outcome {
    let (store, short) = (world.store().await, world.name());
    let long = Name::new(&format!("{short}/b")).expect("a name");
    hold(&store, &long, &world.claim()).await;
    hold(&store, &short, &world.claim()).await;
    assert_eq!(queue(&store, &long, &world.claim()).await, 1);
    assert_eq!(standing(&store, &short).await, 1);
    Ok(())
}

/// `inspect` gives lines in the order of names, page by page, with who is in and who waits.
pub async fn inspect_pages_by_name(world: World) -> Outcome {
    let (store, base) = (world.store().await, world.name());
    let names: Vec<_> = (0..7).map(|at| Name::new(&format!("{base}/{at}")).expect("a name")).collect();
    for name in &names {
        hold(&store, name, &world.claim()).await;
        queue(&store, name, &world.claim()).await;
    }
    let mut seen = Vec::new();
    let mut after = Some(base.clone());
    while seen.len() < names.len() {
        let page = Page { only: None, after: after.as_ref(), limit: 3 };
        let views = match store.inspect(page).await {
            Ok(views) => views,
            Err(error) if error.is_transient() => continue,
            Err(error) => panic!("{error:?}"),
        };
        assert!(!views.is_empty() && views.len() <= 3);
        after = views.last().map(|view| view.name.clone());
        for view in views.iter().filter(|view| names.contains(&view.name)) {
            let states: Vec<_> = view.claims.iter().map(|claim| claim.state).collect();
            assert_eq!(states, [ClaimState::Holding, ClaimState::Waiting]);
            assert_eq!((view.kind, view.capacity), (world.claim().kind, world.claim().capacity));
            seen.push(view.name.clone());
        }
    }
    assert_eq!(seen, names);
    Ok(())
}

/// One name is one kind with one capacity while anybody stands in its line; a mismatch changes nothing.
pub async fn kind_and_capacity_must_agree(world: World) -> Outcome {
    let (store, lock, claim) = (world.store().await, world.name(), world.claim());
    hold(&store, &lock, &claim).await;
    let strangers = [
        lockkeeper_core::Claim { kind: LockKind::ReadWrite, weight: 5, capacity: 5, ..world.claim() },
        lockkeeper_core::Claim { capacity: claim.capacity + 1, ..world.claim() },
        lockkeeper_core::Claim { kind: LockKind::Election, ..world.claim() },
    ];
    for stranger in &strangers {
        let error = loop {
            match store.enter(&lock, stranger).await {
                Err(error) if error.is_transient() => {}
                Err(error) => break error,
                Ok(standing) => panic!("{standing:?}"),
            }
        };
        assert!(matches!(error.kind(), ErrorKind::Mismatch | ErrorKind::Unsupported), "{error:?}");
    }
    assert_eq!(standing(&store, &lock).await, 1);
    leave(&store, &lock, claim.id, Duration::ZERO).await;
    hold(&store, &lock, &strangers[2]).await;
    Ok(())
}
