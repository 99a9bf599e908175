//! The laws every store keeps, and the rig that starts real servers.

pub mod rig;
