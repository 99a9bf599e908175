//! Losing a lock: here it is broken by hand, elsewhere the network or a long pause does it.

use std::time::Duration;

use lockkeeper::{ErrorKind, Keeper};

#[tokio::main]
async fn main() -> lockkeeper::Result<()> {
    let keeper = Keeper::connect("memory:").await?;
    let hold = keeper.mutex("report").lease(Duration::from_millis(600)).lock().await?;

    // An operator lets the hold run out; the next renewal finds that out.
    keeper.break_claim("report", hold.claim_id(), lockkeeper::store::Keep::Lease).await?;

    let why = hold.lost().await;
    println!("{why}");
    assert!(!hold.is_held());

    // Releasing says that it was not ours any more.
    let error = hold.release().await.expect_err("it was lost");
    assert_eq!(error.kind(), ErrorKind::Lost);
    Ok(())
}
