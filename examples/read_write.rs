//! Many read together, one writes alone, and a waiting writer is not overtaken.

use std::time::Duration;

use lockkeeper::{ErrorKind, Keeper};

#[tokio::main(flavor = "current_thread")]
async fn main() -> lockkeeper::Result<()> {
    let keeper = Keeper::connect("memory:").await?;
    let prices = keeper.rwlock("prices");

    let (one, two) = (prices.read().await?, prices.read().await?);
    println!("two readers are in together");

    // A writer stands in line behind them.
    let writer = tokio::spawn({
        let prices = prices.clone();
        async move { prices.write().await }
    });
    while keeper.inspect("prices").await?.expect("readers are in").claims.len() < 3 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }

    // A reader that comes now waits its turn behind the writer, so that writers do not starve.
    let late = prices.clone().wait(Duration::from_millis(50)).read().await.expect_err("a writer waits");
    assert_eq!(late.kind(), ErrorKind::Timeout);
    println!("a late reader: {late}");

    one.release().await?;
    two.release().await?;
    let write = writer.await.expect("the task did not panic")?;
    assert!(prices.try_read().await?.is_none());
    println!("the writer is in, alone");

    // The writer becomes a reader. No other writer gets in between, and the token stays.
    let token = write.token();
    let read = write.downgrade().await?;
    assert_eq!(read.token(), token);
    let beside = prices.read().await?;
    println!("the writer has become a reader, and another reads beside it");
    beside.release().await?;
    read.release().await
}
