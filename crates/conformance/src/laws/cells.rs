//! Cells: versions, counters, limiters and fences, each operation atomic at the store.

use std::collections::HashMap;
use std::time::Duration;

use lockkeeper_core::cell::{CellAction, CellOp, CellReply, Versioned};
use lockkeeper_core::store::{SharedStore, Standing, StoreTime, Tokens};
use lockkeeper_core::stores::Memory;
use lockkeeper_core::{Claim, ClaimId, ErrorKind, LockKind, Name, Patience, Token};

use super::{SOON, leave};
use crate::{Outcome, Skip, World};

/// Laws of cells are about single answers, which a lost one cannot give.
async fn cell(world: &World) -> Result<(SharedStore, Name), Skip> {
    world.needs_every_call()?;
    Ok((world.store().await, world.name()))
}

async fn update(store: &SharedStore, cell: &Name, action: CellAction) -> CellReply {
    store.update(cell, &CellOp::new(action)).await.expect("an answer")
}

async fn read(store: &SharedStore, cell: &Name) -> Option<Versioned> {
    store.read(cell).await.expect("an answer")
}

fn put(value: &[u8], if_version: Option<u64>) -> CellAction {
    CellAction::Put { value: value.to_vec(), if_version }
}

/// The optimistic lock: of many who read the same version, one may write.
pub async fn a_put_wants_the_version_it_read(world: World) -> Outcome {
    let (store, cell) = cell(&world).await?;
    assert_eq!(read(&store, &cell).await, None);
    let CellReply::Done { version } = update(&store, &cell, put(b"one", Some(0))).await else {
        panic!("it was absent")
    };
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..8_u8 {
        let (store, cell) = (world.store().await, cell.clone());
        writers.spawn(async move { (writer, update(&store, &cell, put(&[writer], Some(version))).await) });
    }
    let mut won = Vec::new();
    while let Some(done) = writers.join_next().await {
        match done.expect("a task") {
            (writer, CellReply::Done { version }) => won.push((writer, version)),
            (_, CellReply::Conflict { current }) => assert!(current.is_some()),
            (_, other) => panic!("{other:?}"),
        }
    }
    assert_eq!(won.len(), 1);
    assert_eq!(read(&store, &cell).await, Some(Versioned { value: vec![won[0].0], version: won[0].1 }));
    Ok(())
}

/// A version is gone for good: a cell that was removed and made again has another.
pub async fn a_version_is_never_used_again(world: World) -> Outcome {
    let (store, cell) = cell(&world).await?;
    let mut seen = Vec::new();
    for _ in 0..5 {
        let CellReply::Done { version } = update(&store, &cell, put(b"x", Some(0))).await else { panic!("absent") };
        assert!(!seen.contains(&version));
        seen.push(version);
        let stale = update(&store, &cell, CellAction::Remove { if_version: Some(version + 1) }).await;
        assert!(matches!(stale, CellReply::Conflict { .. }), "{stale:?}");
        let removed = update(&store, &cell, CellAction::Remove { if_version: Some(version) }).await;
        assert_eq!(removed, CellReply::Done { version: 0 });
        assert_eq!(read(&store, &cell).await, None);
    }
    Ok(())
}

/// Twenty takers of ten pieces: ten get one.
pub async fn a_counter_does_not_oversell(world: World) -> Outcome {
    let (store, cell) = cell(&world).await?;
    update(&store, &cell, CellAction::Add { by: 10 }).await;
    let mut takers = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let (store, cell) = (store.clone(), cell.clone());
        takers.spawn(async move { update(&store, &cell, CellAction::Take { by: 1, floor: 0 }).await });
    }
    let mut sold = 0;
    while let Some(taken) = takers.join_next().await {
        match taken.expect("a task") {
            CellReply::Number { .. } => sold += 1,
            CellReply::TooLow { value } => assert_eq!(value, 0),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(sold, 10);
    assert_eq!(read(&store, &cell).await.expect("a number").value, b"0");
    Ok(())
}

/// `Max` raises and never lowers; adding beyond 64 bits is refused and changes nothing.
pub async fn a_number_is_raised_but_not_lowered(world: World) -> Outcome {
    let (store, cell) = cell(&world).await?;
    for (at_least, value) in [(5, 5), (3, 5), (i64::MAX, i64::MAX)] {
        let reply = update(&store, &cell, CellAction::Max { at_least }).await;
        assert!(matches!(reply, CellReply::Number { value: now, .. } if now == value), "{reply:?}");
    }
    let error = store.update(&cell, &CellOp::new(CellAction::Add { by: 1 })).await.expect_err("it does not fit");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(read(&store, &cell).await.expect("a number").value, i64::MAX.to_string().as_bytes());
    Ok(())
}

/// A fixed window admits its limit and no more, says when to come back, and then admits again.
pub async fn a_window_admits_its_limit(world: World) -> Outcome {
    let (store, cell) = cell(&world).await?;
    world.needs(&world.profile().await.time, &[StoreTime::Store])?;
    let per = Duration::from_secs(1);
    limited_to_three(&store, &cell, &CellAction::Window { take: 1, limit: 3, per }, per).await;
    Ok(())
}

/// A smooth limit admits a burst, then one for every share of its period.
pub async fn a_smooth_limit_refills(world: World) -> Outcome {
    let (store, cell) = cell(&world).await?;
    world.needs(&world.profile().await.time, &[StoreTime::Store])?;
    let per = Duration::from_secs(3);
    limited_to_three(&store, &cell, &CellAction::Gcra { take: 1, limit: 3, per }, per / 3).await;
    let all = update(&store, &cell, CellAction::Gcra { take: 4, limit: 3, per }).await;
    assert!(matches!(all, CellReply::Limited { retry_after: None, .. }), "{all:?}");
    Ok(())
}

async fn limited_to_three(store: &SharedStore, cell: &Name, take: &CellAction, back_within: Duration) {
    for left in [2, 1, 0] {
        let reply = update(store, cell, take.clone()).await;
        assert!(matches!(reply, CellReply::Admitted { remaining, .. } if remaining == left), "{reply:?}");
    }
    let CellReply::Limited { remaining: 0, retry_after: Some(wait) } = update(store, cell, take.clone()).await else {
        panic!("the fourth is refused");
    };
    assert!(wait <= back_within, "{wait:?}");
    tokio::time::sleep(wait).await;
    assert!(matches!(update(store, cell, take.clone()).await, CellReply::Admitted { .. }));
}

/// The fence has two marks: a holder that fell behind can neither write nor read-to-write, equal passes.
pub async fn a_fence_keeps_a_stale_holder_out(world: World) -> Outcome {
    let (store, cell) = cell(&world).await?;
    world.needs(&world.profile().await.tokens, &[Tokens::Monotone, Tokens::Floored])?;
    let token = |number: u64| Token::of_number(number).expect("it fits");
    let entry = |number, shared| CellAction::FenceEnter { token: token(number), shared };
    let write = |number, value: &[u8]| CellAction::FencedPut { token: token(number), value: Some(value.to_vec()) };
    assert!(matches!(update(&store, &cell, entry(5, false)).await, CellReply::Entered { current: None }));
    assert!(matches!(update(&store, &cell, write(5, b"five")).await, CellReply::Done { .. }));
    // The next holder has entered and read, but not yet written, when the stale write lands.
    let CellReply::Entered { current } = update(&store, &cell, entry(6, false)).await else { panic!("it is newer") };
    assert_eq!(current.expect("a value").value, b"five");
    assert_eq!(update(&store, &cell, write(5, b"late")).await, CellReply::Stale { seen: token(6) });
    assert!(matches!(update(&store, &cell, write(6, b"six")).await, CellReply::Done { .. }));
    // Readers share; a writer older than a reader is refused, a reader older than a writer too.
    assert!(matches!(update(&store, &cell, entry(9, true)).await, CellReply::Entered { .. }));
    assert!(matches!(update(&store, &cell, entry(8, true)).await, CellReply::Entered { .. }));
    assert_eq!(update(&store, &cell, entry(8, false)).await, CellReply::Stale { seen: token(9) });
    assert_eq!(update(&store, &cell, entry(5, true)).await, CellReply::Stale { seen: token(6) });
    let unfenced = store.update(&cell, &CellOp::new(put(b"around", None))).await;
    assert_eq!(unfenced.expect_err("there is no way around").kind(), ErrorKind::Mismatch);
    assert_eq!(read(&store, &cell).await.expect("a value").value, b"six");
    Ok(())
}

/// A cell with a time to be kept is gone after it, and not before.
pub async fn a_cell_is_forgotten_when_its_time_is_over(world: World) -> Outcome {
    let (store, cell) = cell(&world).await?;
    world.needs(&world.profile().await.time, &[StoreTime::Store])?;
    let keep = Some(Duration::from_millis(600));
    let before = std::time::Instant::now();
    store.update(&cell, &CellOp { action: put(b"x", None), keep }).await.expect("an answer");
    let gone = async {
        while read(&store, &cell).await.is_some() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(SOON, gone).await.expect("it is forgotten");
    assert!(Some(before.elapsed()) >= keep);
    Ok(())
}

/// A cell is one thing: what is asked of it as another is a mismatch and changes nothing.
pub async fn cells_do_not_mix_their_kinds(world: World) -> Outcome {
    let (store, cell) = cell(&world).await?;
    update(&store, &cell, put(b"text", None)).await;
    let token = Token::of_number(1).expect("it fits");
    for action in [CellAction::Add { by: 1 }, CellAction::Take { by: 1, floor: 0 }, CellAction::Max { at_least: 1 }] {
        let error = store.update(&cell, &CellOp::new(action)).await.expect_err("it is text");
        assert_eq!(error.kind(), ErrorKind::Mismatch);
    }
    assert_eq!(read(&store, &cell).await.expect("a value").value, b"text");
    update(&store, &world.name(), CellAction::Add { by: 1 }).await;
    let counter = world.name();
    update(&store, &counter, CellAction::Add { by: 1 }).await;
    let fenced = store.update(&counter, &CellOp::new(CellAction::FencedPut { token, value: None })).await;
    assert_eq!(fenced.expect_err("it is a counter").kind(), ErrorKind::Mismatch);
    Ok(())
}

/// Some hundred random calls get the same answers from the store as from the model.
pub async fn random_calls_agree_with_the_model(world: World) -> Outcome {
    world.needs_every_call()?;
    let seed = fastrand::u64(..);
    let mut dice = fastrand::Rng::with_seed(seed);
    let model: SharedStore = Memory::shared();
    let (store, names) = (world.store().await, [world.name(), world.name()]);
    // An id is one logical acquire (C1), of one lock: each claim keeps to its own name.
    let mut claims: Vec<Claim> = (0..8).map(|_| random_claim(&world, &mut dice)).collect();
    let mut versions = HashMap::new();
    for step in 0..300 {
        let at = dice.usize(..claims.len());
        let name = &names[at % names.len()];
        let (ours, theirs) = match dice.u32(0..10) {
            0..=3 => (shape(store.enter(name, &claims[at]).await), shape(model.enter(name, &claims[at]).await)),
            4..=6 => {
                // Once out, an id is not used again.
                let id = std::mem::replace(&mut claims[at].id, ClaimId::random().expect("random numbers"));
                let both =
                    (leave(&store, name, id, Duration::ZERO).await, leave(&model, name, id, Duration::ZERO).await);
                (format!("{:?}", both.0), format!("{:?}", both.1))
            }
            7 => {
                claims[at] = random_claim(&world, &mut dice);
                continue;
            }
            _ => {
                let action = random_action(&mut dice, versions.get(name).copied());
                let ours = store.update(name, &CellOp::new(action.0)).await;
                let theirs = model.update(name, &CellOp::new(action.1)).await;
                if let (Ok(CellReply::Done { version: a }), Ok(CellReply::Done { version: b })) = (&ours, &theirs) {
                    versions.insert(name.clone(), (*a, *b));
                }
                (reply_shape(ours), reply_shape(theirs))
            }
        };
        assert_eq!(ours, theirs, "step {step} of seed {seed}");
    }
    Ok(())
}

fn random_claim(world: &World, dice: &mut fastrand::Rng) -> Claim {
    let (kind, weight, capacity) = match dice.u32(0..4) {
        0 => (LockKind::Mutex, 1, 1),
        1 => (LockKind::Semaphore, dice.u32(1..=3), 3),
        2 => (LockKind::ReadWrite, 1, 9),
        _ => (LockKind::ReadWrite, 9, 9),
    };
    let patience = if dice.bool() { Patience::Queue } else { Patience::Now };
    Claim { kind, weight, capacity, patience, ..world.claim() }
}

/// The same action twice, each with the version its own side knows.
fn random_action(dice: &mut fastrand::Rng, versions: Option<(u64, u64)>) -> (CellAction, CellAction) {
    let both = |action: CellAction| (action.clone(), action);
    match dice.u32(0..5) {
        0 => both(CellAction::Add { by: dice.i64(-3..4) }),
        1 => both(CellAction::Take { by: dice.u64(0..3), floor: -2 }),
        2 => both(CellAction::Remove { if_version: None }),
        3 => both(put(b"v", None)),
        _ => {
            let (ours, theirs) = versions.unwrap_or((0, 0));
            (put(b"w", Some(ours)), put(b"w", Some(theirs)))
        }
    }
}

/// What must agree of a standing: not the numbers, which are each store's own.
fn shape(standing: lockkeeper_core::Result<Standing>) -> String {
    match standing {
        Ok(Standing::Held { .. }) => "held".into(),
        Ok(Standing::Waiting { ahead, .. }) => format!("waiting behind {ahead}"),
        Ok(Standing::Refused { .. }) => "refused".into(),
        Err(error) => format!("{:?}", error.kind()),
    }
}

fn reply_shape(reply: lockkeeper_core::Result<CellReply>) -> String {
    match reply {
        Ok(CellReply::Done { version }) => format!("done, there {}", version > 0),
        Ok(CellReply::Number { value, .. }) => format!("number {value}"),
        Ok(CellReply::Conflict { current }) => format!("conflict with {:?}", current.map(|current| current.value)),
        Ok(other) => format!("{other:?}"),
        Err(error) => format!("{:?}", error.kind()),
    }
}
