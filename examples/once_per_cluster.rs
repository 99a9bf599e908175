//! A job that every host starts and one does; the others get its result.
//!
//! Surprise: it is the record that happens once. A run that dies half-way leaves none, and is taken again.

use std::time::Duration;

use lockkeeper::kinds::Run;
use lockkeeper::{Error, Keeper};

/// What every host does at midnight.
async fn nightly(keeper: Keeper, host: &'static str) -> lockkeeper::Result<Run> {
    // The day is part of the key, so tomorrow is another job. The record is kept for a week.
    let report = keeper.once("report/2026-11-15").keep(Duration::from_secs(7 * 24 * 3_600));
    report
        .run(|hold| {
            println!("{host} writes the report under the lock `{}`", hold.name());
            async move {
                tokio::time::sleep(Duration::from_millis(100)).await;
                Ok::<_, Error>(format!("42 pages by {host}").into_bytes())
            }
        })
        .await
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> lockkeeper::Result<()> {
    let mut hosts = Vec::new();
    for host in ["host-1", "host-2", "host-3"] {
        let keeper = Keeper::connect("memory:cluster").await?;
        hosts.push((host, tokio::spawn(nightly(keeper, host))));
    }
    let (mut ran, mut results) = (0, Vec::new());
    for (host, run) in hosts {
        match run.await.expect("the task did not panic")? {
            Run::Ran(result) => {
                println!("{host}: done");
                ran += 1;
                results.push(result);
            }
            Run::Recorded(result) => {
                println!("{host}: was done before: {}", String::from_utf8_lossy(&result));
                results.push(result);
            }
            other => panic!("nobody skips and nobody died: {other:?}"),
        }
    }
    assert_eq!((ran, results.len()), (1, 3));
    assert!(results.iter().all(|result| *result == results[0]));
    Ok(())
}
