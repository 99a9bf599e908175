//! A small value that many change without holding a lock: read, change, write if nobody was faster.

use lockkeeper::Keeper;
use lockkeeper::kinds::Swap;

#[tokio::main]
async fn main() -> lockkeeper::Result<()> {
    let keeper = Keeper::connect("memory:").await?;
    let config = keeper.cell("config");

    // By hand: the version that was read goes along with the write. Zero stands for "not there yet".
    let Swap::Done(version) = config.compare_and_set(0, b"0").await? else { panic!("nobody else is here") };
    assert!(matches!(config.compare_and_set(0, b"mine").await?, Swap::Conflict(Some(_))));
    println!("version {version} is there; a write that expects nothing there is refused");

    // Or with a closure, which runs again when somebody was faster.
    let writers: Vec<_> = (0..8)
        .map(|_| {
            let config = config.clone();
            tokio::spawn(async move {
                let mut conflicts = 0;
                for _ in 0..25 {
                    let done = config.update(|old| Some(add_one(old).into_bytes())).await?;
                    conflicts += done.conflicts;
                }
                Ok::<_, lockkeeper::Error>(conflicts)
            })
        })
        .collect();
    let mut conflicts = 0;
    for writer in writers {
        conflicts += writer.await.expect("the task did not panic")?;
    }
    let end = config.get().await?.expect("it is there");
    println!("8 writers made 200 changes and had to repeat {conflicts}: {}", String::from_utf8_lossy(&end.value));
    assert_eq!(end.value, b"200");
    Ok(())
}

fn add_one(old: Option<&[u8]>) -> String {
    let old = old.and_then(|old| std::str::from_utf8(old).ok()).and_then(|old| old.parse().ok()).unwrap_or(0_u64);
    (old + 1).to_string()
}
