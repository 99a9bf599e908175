//! The stores that need nothing but this process.

mod memory;

pub use memory::Memory;
