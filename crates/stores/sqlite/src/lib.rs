//! The embedded store: one SQLite file, safe for many processes on one host.
