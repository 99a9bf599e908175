//! What people and programs read of a run: one page for the terminal, the same as JSON, and a page with a timeline that
//! opens without a network.
//!
//! Surprise: nothing here judges. What passed and what failed is in the [`Judgement`](crate::judgement::Judgement); the
//! timeline marks what it can see by itself, so that somebody who reads the evidence finds the place.

mod html;
mod json;
#[cfg(test)]
mod sample;
mod text;
pub mod timeline;
pub mod words;

pub use html::page;
pub use json::{Report, report};
pub use text::{repeat, text};
