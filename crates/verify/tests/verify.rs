//! Whole runs, with real worker processes on a real store.

#[path = "verify/running.rs"]
mod running;
