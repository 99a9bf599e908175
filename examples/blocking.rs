//! A program without async code: two threads take turns, and each is told if it loses the lock.

use std::time::Duration;

use lockkeeper::blocking::Keeper;

fn main() -> lockkeeper::Result<()> {
    let keeper = Keeper::connect("memory:")?;
    std::thread::scope(|scope| {
        let workers = ["ann", "ben"].map(|who| {
            let keeper = keeper.clone();
            scope.spawn(move || {
                let hold = keeper.mutex("printer").wait(Duration::from_secs(5)).lock()?;
                hold.on_lost(move |why| eprintln!("{who} stops: {why}"));
                println!("{who} prints with token {:?}", hold.token().map(|token| token.as_u64()));
                hold.release()
            })
        });
        workers.into_iter().try_for_each(|worker| worker.join().expect("a worker"))
    })?;
    keeper.close()
}
