//! What runs async code for threads that have no runtime: one current-thread runtime on a thread of its own.
//!
//! Surprise: the thread only drives timers, connections and background tasks. A call itself is polled by the thread
//! that makes it, so closures given to it need not be `Send` or `'static`. Tokio's own `block_on` is not used for
//! that, because it panics where it must not be called; this one looks first, and answers with an error.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::coop;

use crate::{Error, ErrorKind, Result};

/// How long the thread goes on after the last user is gone, so that holds dropped just before are still released
/// over connections that it drives.
const GRACE: Duration = Duration::from_secs(2);

/// A tokio task's share of work per poll is 128 steps; more steps than that are only allowed outside of tasks.
const STEPS: usize = 256;

/// The runtime of one blocking keeper and all its holds; the thread ends soon after the last one drops it.
pub(super) struct Driver {
    handle: Handle,
    /// Dropping it is the sign to end.
    _stop: oneshot::Sender<()>,
}

impl Driver {
    pub(super) fn start() -> Result<Arc<Self>> {
        let unavailable = |error: std::io::Error| {
            Error::new(ErrorKind::Unavailable, "the thread behind the blocking keeper could not be started")
                .with_source(error)
        };
        let runtime = Builder::new_current_thread().enable_all().build().map_err(unavailable)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let drive = move || {
            runtime.block_on(async {
                let _ = stopped.await;
                tokio::time::sleep(GRACE).await;
            });
            runtime.shutdown_background();
        };
        thread::Builder::new().name("lockkeeper-blocking".into()).spawn(drive).map_err(unavailable)?;
        Ok(Arc::new(Self { handle, _stop: stop }))
    }

    /// Makes a call, and blocks this thread until it is answered; refused inside of async code.
    pub(super) fn run<T, E: From<Error>>(&self, call: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        if inside_async() {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "a blocking call inside of async code would stop its runtime",
            )
            .with_hint("use the async `lockkeeper::Keeper` here, or `tokio::task::spawn_blocking`")
            .into());
        }
        self.block_on(call)
    }

    /// The same without the refusal: for calls that end soon, or when the caller says.
    pub(super) fn block_on<F: Future>(&self, call: F) -> F::Output {
        let _entered = self.handle.enter();
        block_on(call)
    }

    /// Runs something in the background.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(work);
    }
}

/// Is this thread polling a tokio task right now?
///
/// A current [`Handle`] is no sign of it: threads of `spawn_blocking` have one too, and may block. But only where a
/// task is polled is there an end to the steps it may take. They are given back, last one first.
fn inside_async() -> bool {
    if Handle::try_current().is_err() {
        return false;
    }
    let mut task = Context::from_waker(Waker::noop());
    let mut taken = Vec::new();
    let ends = loop {
        match coop::poll_proceed(&mut task) {
            Poll::Pending => break true,
            Poll::Ready(_) if taken.len() == STEPS => break false,
            Poll::Ready(step) => taken.push(step),
        }
    };
    while let Some(step) = taken.pop() {
        drop(step);
    }
    ends
}

/// Wakes a thread that is parked for one call.
struct Bell {
    rung: AtomicBool,
    thread: Thread,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Ordering::SeqCst);
        self.thread.unpark();
    }
}

/// Polls until it is done. Calls may be nested (work under a lock that takes another one): each has a bell of its
/// own, because the inner one swallows what unparked the thread for the outer one.
pub(super) fn block_on<F: Future>(work: F) -> F::Output {
    let bell = Arc::new(Bell { rung: AtomicBool::new(false), thread: thread::current() });
    let waker = Waker::from(bell.clone());
    let mut task = Context::from_waker(&waker);
    let mut work = std::pin::pin!(work);
    loop {
        if let Poll::Ready(done) = work.as_mut().poll(&mut task) {
            return done;
        }
        while !bell.rung.swap(false, Ordering::SeqCst) {
            thread::park();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runtime(threads: usize) -> tokio::runtime::Runtime {
        let mut builder = match threads {
            0 => Builder::new_current_thread(),
            _ => Builder::new_multi_thread(),
        };
        builder.enable_all().build().unwrap()
    }

    #[test]
    fn async_code_is_told_from_threads_that_may_block() {
        assert!(!inside_async());
        for threads in [0, 2] {
            let runtime = runtime(threads);
            let entered = runtime.enter();
            assert!(!inside_async(), "to have a runtime is not to be inside of it");
            drop(entered);
            runtime.block_on(async {
                assert!(inside_async());
                assert!(tokio::spawn(async { inside_async() }).await.unwrap());
                assert!(!tokio::task::spawn_blocking(inside_async).await.unwrap());
                for _ in 0..1_000 {
                    assert!(inside_async() && coop::has_budget_remaining(), "asking costs no steps");
                }
            });
        }
    }

    #[test]
    fn a_call_inside_of_another_does_not_swallow_its_wake_up() {
        let driver = Driver::start().unwrap();
        let (ring, rung) = oneshot::channel();
        let nested = async {
            let mut rung = rung;
            let mut ring = Some(ring);
            // The first poll registers this call's waker, then sleeps in a call of its own while it is woken.
            std::future::poll_fn(|task| {
                let polled = std::pin::Pin::new(&mut rung).poll(task);
                if let Some(ring) = ring.take() {
                    driver.spawn(async move {
                        let _ = ring.send(7);
                    });
                    driver.block_on(tokio::time::sleep(Duration::from_millis(50)));
                }
                polled
            })
            .await
        };
        assert_eq!(driver.block_on(nested).unwrap(), 7);
    }

    #[test]
    fn the_last_one_may_be_dropped_in_async_code() {
        for threads in [0, 2] {
            let driver = Driver::start().unwrap();
            runtime(threads).block_on(async move { drop(driver) });
        }
    }
}
