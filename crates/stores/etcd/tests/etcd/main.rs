//! The etcd store against real servers: its layout, other clients' data, faults, users and encryption.

mod cells;
mod common;
mod layout;
mod leases;
mod strays;
mod wakes;
