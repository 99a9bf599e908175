//! A process that takes one lock and then does as it is told on its standard input, to be killed and stopped by laws.
//!
//! `taker URL NAME LEASE_MS KIND` says `held TOKEN`, and `lost …` if it is. Orders: `check` says `held: yes|no`;
//! `fence` enters the fence of the cell of that name, `write VALUE` writes behind it, and both say how that went;
//! `release` releases and says how that went, `take` takes it again and says `held TOKEN`; `count N FILE` takes the lock N times and counts in a file.

use std::time::Duration;

use lockkeeper::{Hold, Keeper};
use lockkeeper_conformance::{Exclusive, Lock};
use tokio::io::{AsyncBufReadExt, BufReader};

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, name, lease_ms, kind] = arguments.as_slice() else {
        return Err("usage: taker URL NAME LEASE_MS KIND".into());
    };
    let lease = Duration::from_millis(lease_ms.parse()?);
    let keeper = Keeper::connect(url).await?;
    let kind = Exclusive::named(kind).ok_or("a kind that is not known")?;
    let lock = kind.of(&keeper, name).lease(lease).wait(Duration::from_secs(100));
    let mut held = Some(take(&lock).await?);
    let mut orders = BufReader::new(tokio::io::stdin()).lines();
    while let Some(order) = orders.next_line().await? {
        let words: Vec<&str> = order.split(' ').collect();
        match (words.as_slice(), held.take()) {
            (["check"], Some(hold)) => {
                println!("held: {}", if hold.is_held() { "yes" } else { "no" });
                held = Some(hold);
            }
            (["fence"], Some(hold)) => {
                let entered = keeper.cell(name).fenced(&hold)?.read().await;
                println!("fence: {}", entered.map_or_else(|error| error.kind().as_str(), |_| "ok"));
                held = Some(hold);
            }
            (["write", value], Some(hold)) => {
                let written = keeper.cell(name).fenced(&hold)?.write(Some(value.as_bytes())).await;
                println!("write: {}", written.map_or_else(|error| error.kind().as_str(), |_| "ok"));
                held = Some(hold);
            }
            (["release"], Some(hold)) => match hold.release().await {
                Ok(()) => println!("release: ok"),
                Err(error) => println!("release: {} {error}", error.kind().as_str()),
            },
            (["take"], None) => held = Some(take(&lock).await?),
            (["count", rounds, file], hold) => {
                drop(hold);
                for _ in 0..rounds.parse()? {
                    count(&lock, file).await?;
                }
                println!("counted");
            }
            _ => return Err(format!("an order that cannot be followed: {order}").into()),
        }
    }
    Ok(())
}

async fn take(lock: &Lock) -> Result<Hold, lockkeeper::Error> {
    let hold = lock.lock().await?;
    println!("held {}", hold.token().map_or(0, |token| token.as_u64()));
    let lost = hold.lost();
    tokio::spawn(async move { println!("lost: {}", lost.await) });
    Ok(hold)
}

/// Reads, adds one and writes, which loses counts unless it is done one at a time.
async fn count(lock: &Lock, file: &str) -> Result<(), Box<dyn std::error::Error>> {
    let hold = lock.lock().await?;
    let seen: u64 = tokio::task::block_in_place(|| std::fs::read_to_string(file))?.parse()?;
    tokio::task::yield_now().await;
    tokio::task::block_in_place(|| std::fs::write(file, (seen + 1).to_string()))?;
    hold.release().await?;
    Ok(())
}
