//! Members of a cluster, stopped and going on by turns, on a thread of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use lockkeeper_rig::{Cluster, Trouble};

/// For how long some are stopped.
pub(super) const STOPPED: Duration = Duration::from_secs(5);
/// For how long all go on between.
pub(super) const GOING_ON: Duration = Duration::from_secs(5);
/// Whoever sleeps here wakes this often to see whether it is over.
const NAP: Duration = Duration::from_millis(20);

/// The thread, and the cluster that it gives back.
pub(super) struct Pauses {
    over: Over,
    thread: tokio::task::JoinHandle<Result<Cluster, Trouble>>,
}

/// Ends the thread, also when somebody who waits for it is gone.
struct Over(Arc<AtomicBool>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Pauses {
    /// Begins with a time in which all go on.
    pub(super) fn start(mut cluster: Cluster, seed: u64, end: Instant) -> Result<Self, Trouble> {
        let over = Over(Arc::default());
        let flag = over.0.clone();
        let thread = tokio::task::spawn_blocking(move || {
            let mut lots = fastrand::Rng::with_seed(seed);
            let is_over = || flag.load(Ordering::SeqCst) || Instant::now() >= end;
            while rest(GOING_ON, &is_over) {
                let members = drawn(&mut lots, cluster.members().len());
                members.iter().try_for_each(|member| cluster.member(*member).pause())?;
                rest(STOPPED, &is_over);
                members.iter().try_for_each(|member| cluster.member(*member).resume())?;
            }
            Ok(cluster)
        });
        Ok(Self { over, thread })
    }

    /// Stops the cluster, once all go on again.
    pub(super) async fn end(self) -> Result<(), Trouble> {
        drop(self.over);
        let cluster = self.thread.await.map_err(|error| Trouble::new(format!("the stops ended badly: {error}")))??;
        cluster.stop()
    }
}

/// Some of so many, at least one.
fn drawn(lots: &mut fastrand::Rng, members: usize) -> Vec<usize> {
    let mut all: Vec<usize> = (0..members).collect();
    lots.shuffle(&mut all);
    all.truncate(lots.usize(1..=members));
    all
}

/// Sleeps. Says whether it goes on.
fn rest(time: Duration, is_over: &dyn Fn() -> bool) -> bool {
    let end = Instant::now() + time;
    loop {
        if is_over() {
            return false;
        }
        match end.saturating_duration_since(Instant::now()) {
            Duration::ZERO => return true,
            left => sleep(left.min(NAP)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_members_and_all_sorts_of_them() {
        let draw = |seed| {
            let mut lots = fastrand::Rng::with_seed(seed);
            (0..60).map(|_| drawn(&mut lots, 3)).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        for count in 1..=3 {
            assert!(draw(7).iter().filter(|members| members.len() == count).count() > 5, "{count} at once");
        }
        assert!(draw(7).iter().all(|members| members.iter().all(|member| *member < 3)));
    }
}
