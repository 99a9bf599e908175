//! Set-up, servers, tests, benchmarks.

fn main() {}
