//! A holder that was paused writes too late, and the fence refuses it.
//!
//! Surprise: the late write comes when the next holder has read but not written yet. A check of writes alone would let
//! it through, and the next write would wipe it out. So the fence is entered before the read.

use std::time::Duration;

use lockkeeper::{ErrorKind, Keeper};

#[tokio::main(flavor = "current_thread")]
async fn main() -> lockkeeper::Result<()> {
    let keeper = Keeper::connect("memory:").await?;
    let stock = keeper.cell("stock/42");
    stock.put(b"100").await?;

    // The first holder enters the fence with its token and reads. Nothing renews its lease, as if it were paused now.
    let paused = keeper.mutex("stock/42").at_most(Duration::from_millis(200)).lock().await?;
    let behind_fence = stock.fenced(&paused)?;
    let seen = behind_fence.read().await?.expect("there is stock");
    println!("the first holder read {}, and is paused", String::from_utf8_lossy(&seen.value));

    // Its lease ends. The next holder gets in, enters the fence with a greater token, and reads.
    let next = keeper.mutex("stock/42").lock().await?;
    assert!(next.token() > paused.token());
    let newer = stock.fenced(&next)?;
    assert_eq!(newer.read().await?.expect("there is stock").value, b"100");
    println!("the next holder read 100");

    // The first one goes on where it was and writes, without looking at its hold.
    let refused = behind_fence.write(Some(b"99")).await.expect_err("a later holder has entered the fence");
    assert_eq!(refused.kind(), ErrorKind::Lost);
    println!("the first holder's write was refused: {refused}");

    newer.write(Some(b"98")).await?;
    next.release().await?;
    assert_eq!(stock.get().await?.expect("there is stock").value, b"98");
    println!("the next holder wrote 98, and nothing was lost");
    Ok(())
}
