//! Tests of the nemesis: each fault really hurts, is seen to by somebody who is not told, and is over when it says so.

use std::io::Write;
use std::sync::Once;

use crate::plan::{MadeOf, Plan, Promised, Work};

use super::*;

/// Did anybody ask for servers? If not, that is said aloud.
pub(crate) fn servers_wanted() -> bool {
    static ONCE: Once = Once::new();
    let wanted = lockkeeper_rig::wanted();
    if !wanted {
        // To the stream itself: the test harness swallows `eprintln!`.
        let line = "\nNOT RUN: tests of verify with a real redis; `cargo xtask test` runs them\n";
        ONCE.call_once(|| drop(writeln!(std::io::stderr(), "{line}")));
    }
    wanted
}

/// A plan for a run that does this.
pub(crate) fn plan(nemesis: &[Nemesis], lease_ms: u64) -> Plan {
    Plan {
        target: "sqlite".to_owned(),
        nemesis: nemesis.to_vec(),
        work: Work::Mutex,
        for_ms: 1_000,
        seed: 7,
        workers: 2,
        tasks: 1,
        locks: 1,
        lease_ms,
        delay_ms: 0,
        think_us: 1_000,
        mutant: None,
        store: Promised {
            scheme: "sqlite".to_owned(),
            tokens: true,
            fifo: true,
            push: true,
            has_time: true,
            expiry_slack_ms: 0,
            durable: true,
        },
        made_of: MadeOf { lockkeeper: "0".to_owned(), commit: None, server: None, began: "never".to_owned() },
    }
}
