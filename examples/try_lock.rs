//! Try, and do something else if somebody holds the lock: not getting it is not an error.

use lockkeeper::Keeper;

#[tokio::main]
async fn main() -> lockkeeper::Result<()> {
    let keeper = Keeper::connect("memory:").await?;
    let first = keeper.mutex("cleanup").try_lock().await?;
    assert!(first.is_some());

    match keeper.mutex("cleanup").try_lock().await? {
        Some(_hold) => println!("cleaning up"),
        None => {
            let line = keeper.inspect("cleanup").await?.expect("somebody holds it");
            let holder = line.holders().next().expect("somebody holds it");
            println!("{} is already cleaning up", holder.owner);
        }
    }
    Ok(())
}
