//! Five per second for all processes together: a burst of five, then one every 200 ms.

use std::time::{Duration, Instant};

use lockkeeper::Keeper;
use lockkeeper::kinds::Decision;

#[tokio::main(flavor = "current_thread")]
async fn main() -> lockkeeper::Result<()> {
    let keeper = Keeper::connect("memory:").await?;
    let mails = keeper.limiter("mails", 5, Duration::from_secs(1));

    let began = Instant::now();
    for mail in 1..=8 {
        mails.take(1, Duration::from_secs(5)).await?;
        println!("mail {mail} goes out after {:>3} ms", began.elapsed().as_millis());
    }
    // Five at once, and three more at 200 ms each.
    assert!(began.elapsed() >= Duration::from_millis(550));

    // A web server would rather say no at once, and when to come back.
    let logins = keeper.limiter("logins/alice", 3, Duration::from_secs(60));
    for _ in 0..3 {
        assert!(logins.try_take(1).await?.is_admitted());
    }
    let Decision::Limited { retry_after: Some(wait), .. } = logins.try_take(1).await? else {
        panic!("three a minute are used up");
    };
    println!("a fourth login may be tried in {wait:.1?}");
    assert!(wait <= Duration::from_secs(20));
    Ok(())
}
