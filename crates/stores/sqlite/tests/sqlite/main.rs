//! The store against its model, against other processes, and against what may happen to a file.

mod common;
mod epochs;
mod files;
mod model;
mod processes;
mod threads;
mod wakes;
