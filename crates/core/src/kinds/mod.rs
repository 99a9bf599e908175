//! The kinds: each makes a claim of its own weight and hands it to the one loop in `acquire`, or is one known
//! operation on a cell.
//!
//! A new kind is one file here and one file of laws; stores are not changed for it.

mod cell;
mod counter;
mod election;
mod limiter;
mod multi;
mod mutex;
mod once;
mod rwlock;
mod semaphore;
mod terms;

pub use cell::{Cell, FencedCell, Swap, Updated};
pub use counter::Counter;
pub use election::{Election, Leader, Leadership, Observer};
pub use limiter::{Decision, Limiter};
pub use multi::{Multi, MultiHold};
pub use mutex::Mutex;
pub use once::{Begun, Once, OnceHold, Run};
pub use rwlock::{RwLock, WriteHold};
pub use semaphore::Semaphore;
pub(crate) use terms::Shape;
