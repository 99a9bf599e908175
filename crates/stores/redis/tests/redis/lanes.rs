//! Many tasks of one client at once: requests are gathered into few writes, and every answer reaches the one who asked.

use std::collections::HashSet;
use std::time::Duration;

use lockkeeper_core::store::{Keep, Left, Standing, Store};
use lockkeeper_core::{Claim, Name};

use crate::common::*;

const LEASE: Duration = Duration::from_secs(30);
const CROWD: usize = 300;

#[tokio::test(flavor = "multi_thread")]
async fn answers_of_a_crowd_reach_who_asked() {
    let Some(server) = own("redis") else { return };
    let (store, other) = (open(server.port()).await, open(server.port()).await);
    let locks: Vec<Name> = (0..CROWD).map(|at| name(&format!("crowd/{at}"))).collect();
    // Some are taken, without any pattern.
    let taken: HashSet<Name> = locks.iter().filter(|_| fastrand::bool()).cloned().collect();
    for lock in &taken {
        take(&other, lock, &at_once(LEASE)).await;
    }
    for _ in 0..3 {
        let ask = |lock: &Name| {
            let (store, lock, claim) = (store.clone(), lock.clone(), at_once(LEASE));
            tokio::spawn(async move { (store.enter(&lock, &claim).await.expect("an answer"), lock, claim) })
        };
        let mut mine: Vec<(Name, Claim)> = Vec::new();
        for task in locks.iter().map(ask).collect::<Vec<_>>() {
            let (standing, lock, claim) = soon("an answer", task).await.unwrap();
            match standing {
                Standing::Refused { .. } => assert!(taken.contains(&lock), "`{lock}` was free"),
                held => {
                    token(&held);
                    assert!(!taken.contains(&lock), "`{lock}` is another's");
                    let line = line(&other, &lock).await.expect("somebody is in");
                    assert_eq!(line.claims[0].id, claim.id, "`{lock}`");
                    mine.push((lock, claim));
                }
            }
        }
        assert_eq!(mine.len(), CROWD - taken.len());
        // Released together, some of them twice.
        let give = |(lock, claim): (Name, Claim)| {
            let store = store.clone();
            tokio::spawn(async move { store.leave(&lock, claim.id, Keep::Nothing).await.expect("an answer") })
        };
        for task in mine.iter().cloned().map(give).collect::<Vec<_>>() {
            assert_eq!(soon("an answer", task).await.unwrap(), Left::Released);
        }
        for task in mine.into_iter().map(give).collect::<Vec<_>>() {
            assert_eq!(soon("an answer", task).await.unwrap(), Left::NotHeld);
        }
    }
}
