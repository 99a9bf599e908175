//! Several locks at once, all or nothing, and no deadlock whatever order people name them in.

use std::time::Duration;

use lockkeeper::Keeper;

/// Moves money between two accounts while holding both.
async fn transfer(keeper: &Keeper, from: &str, to: &str, amount: i64) -> lockkeeper::Result<()> {
    let both = keeper.multi([from, to]).wait(Duration::from_secs(5)).lock().await?;
    keeper.counter(from).add(-amount).await?;
    // Another task runs here, and would take the locks in the opposite order if it could.
    tokio::task::yield_now().await;
    keeper.counter(to).add(amount).await?;
    both.release().await
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> lockkeeper::Result<()> {
    let keeper = Keeper::connect("memory:").await?;
    keeper.counter("account/a").add(100).await?;
    keeper.counter("account/b").add(100).await?;

    for _ in 0..20 {
        let (there, back) = tokio::join!(
            transfer(&keeper, "account/a", "account/b", 7),
            transfer(&keeper, "account/b", "account/a", 5)
        );
        there?;
        back?;
    }
    let (a, b) = (keeper.counter("account/a").get().await?, keeper.counter("account/b").get().await?);
    println!("after 40 transfers in both directions: a has {a}, b has {b}");
    assert_eq!((a, b), (60, 140));

    // All or nothing: one of the names is taken, so none is.
    let taken = keeper.mutex("account/b").lock().await?;
    assert!(keeper.multi(["account/a", "account/b"]).try_lock().await?.is_none());
    assert!(keeper.inspect("account/a").await?.is_none());
    println!("b is taken, and a was not kept while waiting for it");
    taken.release().await
}
