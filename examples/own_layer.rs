//! A layer of your own: one method around every call to a store. This one counts.
//!
//! Surprise: a layer given to the builder is outside of all others, so it sees a call once, however often it is
//! retried below, and it does not see the renewals, which the watchdog sends by itself. To see everything, put it around
//! the store with `layers::wrap` before the keeper gets it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lockkeeper::Keeper;
use lockkeeper::layers::{Answer, Call, Layer, Next, wrap};
use lockkeeper::store::Reply;

/// How often each method was called.
#[derive(Debug, Clone, Default)]
struct Count(Arc<Mutex<BTreeMap<&'static str, u64>>>);

impl Count {
    fn of(&self, word: &str) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(word).copied().unwrap_or(0)
    }
}

impl Layer for Count {
    fn around<'a>(&'a self, call: Call<'a>, next: Next<'a>) -> Reply<'a, Answer> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(call.word()).or_default() += 1;
        next.run(call).reply()
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> lockkeeper::Result<()> {
    let (outside, inside) = (Count::default(), Count::default());
    let store = wrap(lockkeeper::open("memory:").await?, inside.clone());
    let keeper = Keeper::builder().layer(outside.clone()).with_store(store);

    let hold = keeper.mutex("report").lease(Duration::from_millis(900)).lock().await?;
    let first = hold.deadline();
    hold.deadline_after(first).await;
    hold.release().await?;

    for (place, count) in [("outside", &outside), ("inside", &inside)] {
        let (enter, renew, leave) = (count.of("enter"), count.of("renew"), count.of("leave"));
        println!("{place}: enter {enter}, renew {renew}, leave {leave}");
    }
    assert_eq!((outside.of("enter"), outside.of("renew"), outside.of("leave")), (1, 0, 1));
    assert_eq!((inside.of("enter"), inside.of("leave")), (1, 1));
    assert!(inside.of("renew") >= 1);
    Ok(())
}
