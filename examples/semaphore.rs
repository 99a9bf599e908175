//! At most three at a time, across all processes: for a pool, a licence or a slow neighbour.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lockkeeper::Keeper;

#[tokio::main(flavor = "current_thread")]
async fn main() -> lockkeeper::Result<()> {
    let keeper = Keeper::connect("memory:").await?;
    // Everybody who uses the name says the same capacity.
    let slots = keeper.semaphore("exports", 3);
    let (inside, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));

    let workers: Vec<_> = (1..=9)
        .map(|worker| {
            let (slots, inside, most) = (slots.clone(), inside.clone(), most.clone());
            tokio::spawn(async move {
                let hold = slots.acquire().await?;
                let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                most.fetch_max(now, Ordering::SeqCst);
                println!("worker {worker} exports, {now} at work");
                tokio::time::sleep(Duration::from_millis(50)).await;
                inside.fetch_sub(1, Ordering::SeqCst);
                hold.release().await
            })
        })
        .collect();
    for worker in workers {
        worker.await.expect("the task did not panic")?;
    }
    assert_eq!(most.load(Ordering::SeqCst), 3);

    // One hold can take several permits.
    let large = slots.clone().permits(2).acquire().await?;
    let small = slots.acquire().await?;
    assert!(slots.try_acquire().await?.is_none());
    println!("a large one and a small one fill the three");
    small.release().await?;
    large.release().await
}
