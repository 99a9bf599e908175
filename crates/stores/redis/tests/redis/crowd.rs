//! Many tasks at once: what is gathered into one write is still answered one by one.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use lockkeeper_core::store::{Keep, Left, Store};

use crate::common::*;

const LONG: Duration = Duration::from_secs(60);

/// 300 tasks, some with a name of their own and some that share one, take and release again and again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_is_answered_one_by_one() {
    let Some(server) = own("redis") else { return };
    let store = open(server.port()).await;
    let mut tasks = Vec::new();
    for task in 0..300 {
        let store = store.clone();
        tasks.push(tokio::spawn(async move {
            let lock = name(&format!("crowd/{}", task % 250));
            let mut tokens = Vec::new();
            for _ in 0..20 {
                let claim = at_once(LONG);
                let standing = store.enter(&lock, &claim).await.unwrap();
                if let lockkeeper_core::store::Standing::Held { token: Some(token), .. } = standing {
                    tokens.push((lock.clone(), token));
                    assert_eq!(store.leave(&lock, claim.id, Keep::Nothing).await.unwrap(), Left::Released);
                }
                assert_eq!(store.leave(&lock, claim.id, Keep::Nothing).await.unwrap(), Left::NotHeld);
            }
            tokens
        }));
    }
    let mut all = HashSet::new();
    for task in tasks {
        let tokens = task.await.unwrap();
        assert!(!tokens.is_empty());
        assert!(tokens.iter().is_sorted_by_key(|(_, token)| *token));
        for token in tokens {
            assert!(all.insert(token), "no two holds of a lock have the same token");
        }
    }
    assert!(store.inspect(lockkeeper_core::store::Page::first(10)).await.unwrap().is_empty(), "nothing is left");
}

/// The tasks of a crowd may stop at any moment; those who stay get their answers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_who_leave_a_crowd_hurt_nobody() {
    let Some(server) = own("redis") else { return };
    let store = open(server.port()).await;
    let counted = Arc::new(tokio::sync::Semaphore::new(0));
    let mut tasks = Vec::new();
    for task in 0..200 {
        let (store, counted) = (store.clone(), counted.clone());
        let work = tokio::spawn(async move {
            let lock = name(&format!("leaving/{task}"));
            loop {
                let claim = at_once(LONG);
                take(&store, &lock, &claim).await;
                assert_eq!(store.leave(&lock, claim.id, Keep::Nothing).await.unwrap(), Left::Released);
                counted.add_permits(1);
            }
        });
        tasks.push(work);
    }
    for task in &tasks {
        let turns = counted.acquire_many(50);
        tokio::time::timeout(LONG, turns).await.expect("those who stay go on").unwrap().forget();
        task.abort();
    }
    for task in tasks {
        assert!(task.await.unwrap_err().is_cancelled());
    }
}
