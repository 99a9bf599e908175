//! The etcd store against real servers: its layout, other clients' data, faults, users and encryption.

mod cells;
mod common;
mod faults;
mod layout;
mod leases;
mod strays;
mod tls;
mod users;
mod wakes;
