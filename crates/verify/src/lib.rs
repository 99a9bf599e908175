//! What happens to locks under faults, shown by runs.
//!
//! A run is made by a [`plan::Plan`]: worker *processes* take locks and change registers, a nemesis hurts workers, servers
//! and connections, and everybody writes down what they saw: the [`history`]. Judging comes after, is pure, and can be
//! repeated by anybody who has the folder.
//!
//! Surprise: the registers are not in the store under test. They live in the process that started the run, which nobody
//! hurts; so what is lost there was lost because two held the lock, and for no other reason.

pub mod arena;
pub mod check;
pub mod history;
pub mod judgement;
pub mod mutants;
pub mod nemesis;
pub mod plan;
pub mod promises;
pub mod registers;
pub mod report;
pub mod repro;
pub mod run;
pub mod targets;
pub mod worker;
