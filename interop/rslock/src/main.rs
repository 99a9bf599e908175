//! rslock as a peer of `cargo xtask interop`. What it is told and says: `interop/README.md`.
//!
//! The surprise: rslock does not say whether a release found its lock, so this can only say `release: sent`.

use std::time::Duration;

use rslock::{Lock, LockError, LockManager};
use tokio::io::{AsyncBufReadExt, BufReader};

/// Its default is 200 ms; shorter, so that it meets more moments of the other side.
const POLL: Duration = Duration::from_millis(20);

/// Tries per call; `acquire` calls again for ever, an extension does not.
const TRIES: u32 = 3;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["--version"] {
        println!("rslock {}", version());
        return Ok(());
    }
    let [url, name, lease_ms] = arguments.as_slice() else {
        return Err("usage: rslock-peer URL NAME LEASE_MS".into());
    };
    let lease = Duration::from_millis(lease_ms.parse()?);
    let mut manager = LockManager::new(vec![url.as_str()]);
    manager.set_retry(TRIES, POLL);
    let mut lock = take(&manager, name, lease).await?;
    let mut orders = BufReader::new(tokio::io::stdin()).lines();
    while let Some(order) = orders.next_line().await? {
        match order.as_str() {
            "take" => lock = take(&manager, name, lease).await?,
            "extend" => match manager.extend(&lock, lease).await {
                Ok(extended) => {
                    lock = extended;
                    println!("extend: ok");
                }
                Err(error) => println!("extend: lost ({error})"),
            },
            "release" => {
                manager.unlock(&lock).await;
                println!("release: sent");
            }
            _ => return Err(format!("an order that cannot be followed: {order}").into()),
        }
    }
    Ok(())
}

async fn take(manager: &LockManager, name: &str, lease: Duration) -> Result<Lock, LockError> {
    let lock = manager.acquire_no_guard(name, lease).await?;
    println!("held");
    Ok(lock)
}

/// The version of rslock, from the lock file it was built with.
fn version() -> &'static str {
    let lines = include_str!("../Cargo.lock").lines();
    let mut after = lines.skip_while(|line| *line != "name = \"rslock\"").skip(1);
    after.next().and_then(|line| line.split('"').nth(1)).unwrap_or("of an unknown version")
}
