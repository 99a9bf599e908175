//! What people read: one page for the terminal, the same as JSON, and a timeline that opens without a network.
