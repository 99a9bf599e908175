//! The store against a real server.

mod cells;
