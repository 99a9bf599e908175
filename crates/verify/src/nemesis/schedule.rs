//! What is done and when, drawn from the seed: an endless list, the same for the same seed.
//!
//! Surprise: it knows neither workers nor servers. Where one of several workers is meant, it draws a lot, and whoever acts
//! on it picks by that.

use std::time::Duration;

use fastrand::Rng;

use crate::plan::Nemesis;

/// Between two faults all is well for a lease and this long at least.
const CALM: Duration = Duration::from_secs(1);

/// One fault, and the calm before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Act {
    /// How long all is well before it.
    pub(crate) calm: Duration,
    /// What is done.
    pub(crate) deed: Deed,
}

/// What is done, with everything about it that is left to chance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// A worker is killed.
    KillWorker { lot: u64 },
    /// The one that holds is.
    KillHolder,
    /// A worker is stopped for this long.
    PauseWorker { lot: u64, lasts: Duration },
    /// The one that holds is.
    PauseHolder { lasts: Duration },
    /// A worker's wall clock is off by this for this long.
    StepClient { lot: u64, by: Duration, behind: bool, lasts: Duration },
    /// The server is killed, and started again this much later.
    KillStore { down: Duration },
    /// The server is stopped for this long.
    PauseStore { lasts: Duration },
    /// The server's wall clock is off, by each of these in turn, for so long.
    StepStore { steps: [(&'static str, Duration); 2] },
    /// The server's data is wiped, so often.
    WipeStore { times: u32, apart: Duration },
    /// All connections are cut, and new ones refused for this long.
    Cut { shut: Duration },
    /// What is sent takes so much longer on its way, there and back, for so long.
    Delay { there: Duration, back: Duration, lasts: Duration },
    /// Nothing comes through for this long, and then all connections are cut.
    HalfOpen { lasts: Duration },
    /// Replies are lost for this long, and then all connections are cut.
    LoseReplies { lasts: Duration },
}

impl Deed {
    /// What it is an instance of.
    pub(crate) fn nemesis(&self) -> Nemesis {
        match self {
            Deed::KillWorker { .. } => Nemesis::KillWorker,
            Deed::KillHolder => Nemesis::KillHolder,
            Deed::PauseWorker { .. } => Nemesis::PauseWorker,
            Deed::PauseHolder { .. } => Nemesis::PauseHolder,
            Deed::StepClient { .. } => Nemesis::StepClient,
            Deed::KillStore { .. } => Nemesis::KillStore,
            Deed::PauseStore { .. } => Nemesis::PauseStore,
            Deed::StepStore { .. } => Nemesis::StepStore,
            Deed::WipeStore { .. } => Nemesis::WipeStore,
            Deed::Cut { .. } => Nemesis::Cut,
            Deed::Delay { .. } => Nemesis::Delay,
            Deed::HalfOpen { .. } => Nemesis::HalfOpen,
            Deed::LoseReplies { .. } => Nemesis::LoseReplies,
        }
    }
}

/// The acts of a run, without an end; none where nothing is to be hurt.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    lots: Rng,
    nemesis: Vec<Nemesis>,
    lease: Duration,
    /// How far apart they begin, where that is not left to chance.
    every: Option<Duration>,
    /// How many acts there were.
    drawn: usize,
}

impl Schedule {
    pub(crate) fn new(seed: u64, nemesis: &[Nemesis], lease: Duration, every: Option<Duration>) -> Schedule {
        Schedule { lots: Rng::with_seed(seed), nemesis: nemesis.to_vec(), lease, every, drawn: 0 }
    }

    /// Something between these shares of a lease, in percent.
    fn leases(&mut self, from: u32, to: u32) -> Duration {
        self.lease * self.lots.u32(from..=to) / 100
    }

    fn draw(&mut self, nemesis: Nemesis) -> Deed {
        // Each of them is done in both of its ways, in turn.
        let is_other = (self.drawn / self.nemesis.len()) % 2 == 1;
        match nemesis {
            Nemesis::KillWorker => Deed::KillWorker { lot: self.lots.u64(..) },
            Nemesis::KillHolder => Deed::KillHolder,
            Nemesis::PauseWorker => Deed::PauseWorker { lot: self.lots.u64(..), lasts: self.leases(150, 250) },
            Nemesis::PauseHolder => Deed::PauseHolder { lasts: self.leases(150, 250) },
            Nemesis::StepClient => {
                let (lot, by) = (self.lots.u64(..), Duration::from_secs(3_600));
                Deed::StepClient { lot, by, behind: is_other, lasts: self.leases(100, 200) }
            }
            Nemesis::KillStore if is_other => {
                // Where faults are asked for often, the server is up again in time for the next.
                let most = self.every.map_or(Duration::MAX, |every| every / 2);
                Deed::KillStore { down: self.leases(10, 150).min(most) }
            }
            Nemesis::KillStore => Deed::KillStore { down: Duration::ZERO },
            Nemesis::PauseStore => Deed::PauseStore { lasts: self.leases(150, 250) },
            Nemesis::StepStore => {
                Deed::StepStore { steps: [("+40s", self.leases(50, 150)), ("-1h", self.leases(50, 150))] }
            }
            // Several, because a holder acts for a moment only, and one must be wiped out while it does.
            Nemesis::WipeStore if is_other => Deed::WipeStore { times: 10, apart: self.leases(1, 5) },
            Nemesis::WipeStore => Deed::WipeStore { times: 1, apart: Duration::ZERO },
            Nemesis::Cut if is_other => Deed::Cut { shut: self.leases(10, 150) },
            Nemesis::Cut => Deed::Cut { shut: Duration::ZERO },
            Nemesis::Delay if is_other => {
                Deed::Delay { there: self.leases(100, 150), back: self.leases(0, 50), lasts: self.leases(200, 300) }
            }
            Nemesis::Delay => {
                Deed::Delay { there: self.leases(0, 25), back: self.leases(0, 25), lasts: self.leases(100, 200) }
            }
            Nemesis::HalfOpen => Deed::HalfOpen { lasts: self.leases(50, 200) },
            Nemesis::LoseReplies => Deed::LoseReplies { lasts: self.leases(50, 200) },
        }
    }
}

impl Iterator for Schedule {
    type Item = Act;

    fn next(&mut self) -> Option<Act> {
        let nemesis = *self.nemesis.get(self.drawn.checked_rem(self.nemesis.len())?)?;
        let calm = self.leases(100, 150) + CALM;
        let deed = self.draw(nemesis);
        self.drawn += 1;
        Some(Act { calm, deed })
    }
}
