//! The README and the pages of the guide as tests: every Rust program in them is compiled and run by `cargo test --doc`.
//!
//! Surprise: none of this is in the library, or in its documentation.

/// A page each, since a test is named after the module it stands in.
macro_rules! pages {
    ($($page:ident: $path:literal;)+) => {
        $(#[doc = include_str!(concat!("../../../", $path))] mod $page {})+
    };
}

pages! {
    readme: "README.md";
    first_lock: "docs/guide/first-lock.md";
    choosing_a_kind: "docs/guide/choosing-a-kind.md";
    leases_and_losing: "docs/guide/leases-and-losing.md";
    fences: "docs/guide/fences.md";
    waiting_and_fairness: "docs/guide/waiting-and-fairness.md";
}

#[cfg(test)]
mod tests;
