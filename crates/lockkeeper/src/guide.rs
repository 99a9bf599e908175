//! The pages of the guide as tests: every Rust program in them is compiled and run by `cargo test --doc`.
//!
//! Surprise: none of this is in the library, or in its documentation.

/// A page each, since a test is named after the module it stands in.
macro_rules! pages {
    ($($page:ident: $path:literal;)+) => {
        $(#[doc = include_str!(concat!("../../../docs/guide/", $path))] mod $page {})+
    };
}

pages! {
    first_lock: "first-lock.md";
    choosing_a_kind: "choosing-a-kind.md";
    leases_and_losing: "leases-and-losing.md";
    fences: "fences.md";
    waiting_and_fairness: "waiting-and-fairness.md";
}

#[cfg(test)]
mod tests;
