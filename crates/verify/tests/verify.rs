//! Whole runs, with real worker processes on real stores.

#[cfg(feature = "mutants")]
#[path = "verify/bugs.rs"]
mod bugs;
#[path = "verify/ending.rs"]
mod ending;
#[path = "verify/hurting.rs"]
mod hurting;
#[path = "verify/judging.rs"]
mod judging;
#[path = "verify/running.rs"]
mod running;
#[path = "verify/story.rs"]
mod story;
