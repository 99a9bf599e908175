//! Who hurts whom. The faults themselves are in the modules below; the workers are reached through [`Workers`], so that
//! whoever runs them need not know the nemesis.

use std::time::Duration;

use crate::history::Life;

/// The workers, as the nemesis knows them.
pub trait Workers: Send + Sync {
    /// Those that live.
    fn alive(&self) -> Vec<Life>;
    /// One that is between the read and the write of a register, and so holds a lock at this moment.
    fn holder(&self) -> Option<Life>;
    /// Ends it at once, as `kill -9` does, and starts its next life.
    fn kill(&self, life: Life);
    /// Stops it, as SIGSTOP does; returns when it has stopped.
    fn stop(&self, life: Life);
    /// Lets it go on.
    fn go_on(&self, life: Life);
    /// Steps its wall clock, by so much ahead of the true one; negative is behind. Nothing where that cannot be done.
    fn step_clock(&self, life: Life, ahead: Duration, behind: bool) -> Option<()>;
}
