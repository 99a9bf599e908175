//! The first lock: take it, do the work, release it.
//!
//! `cargo run -p lockkeeper --example first_lock [URL]`

use std::time::Duration;

use lockkeeper::Keeper;

#[tokio::main]
async fn main() -> lockkeeper::Result<()> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "memory:".into());
    let keeper = Keeper::connect(&url).await?;

    let hold = keeper.mutex("orders/42").wait(Duration::from_secs(5)).lock().await?;
    match hold.token() {
        Some(token) => println!("we hold `{}`, with token {token}", hold.name()),
        None => println!("we hold `{}`; this store has no tokens", hold.name()),
    }

    // Work that is dropped if the lock is lost; the token goes to whatever the work changes.
    hold.run(async { println!("selling the last one") }).await?;

    hold.release().await?;
    keeper.close().await
}
