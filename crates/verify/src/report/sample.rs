//! A judgement for the tests of reports: nothing in it was ever run.

use std::collections::BTreeMap;

use crate::history::Guard;
use crate::judgement::{Figures, Finding, Judgement, Outcome, Promise, Recovery, Tally, Updates};
use crate::plan::{MadeOf, Nemesis, Plan, Promised, Work};

pub fn plan() -> Plan {
    Plan {
        target: "redis".to_owned(),
        nemesis: vec![Nemesis::PauseHolder, Nemesis::KillStore],
        work: Work::Mutex,
        for_ms: 120_000,
        seed: 42,
        workers: 4,
        tasks: 3,
        locks: 2,
        lease_ms: 1_500,
        delay_ms: 0,
        think_us: 500,
        every_ms: None,
        mutant: None,
        store: Promised {
            scheme: "redis".to_owned(),
            tokens: true,
            fifo: true,
            push: true,
            has_time: true,
            expiry_slack_ms: 1,
            durable: false,
            quorum: false,
            ends_early: false,
            lease_min_ms: 100,
        },
        made_of: MadeOf {
            lockkeeper: "0.1.0".to_owned(),
            commit: Some("0123456789ab".to_owned()),
            server: Some("7.0.15".to_owned()),
            began: "2026-11-15T16:00:00Z".to_owned(),
        },
    }
}

fn finding(check: &str, outcome: Outcome, saw: &str, evidence: &[&str]) -> Finding {
    let evidence = evidence.iter().map(|line| (*line).to_owned()).collect();
    Finding { check: check.to_owned(), outcome, saw: saw.to_owned(), evidence }
}

pub fn judgement() -> Judgement {
    let tally = |acknowledged, refused, unknown| Tally {
        attempted: acknowledged + refused + unknown,
        acknowledged,
        refused,
        unknown,
    };
    let updates = |tally, lost, lost_at_most| Updates { tally, lost, lost_at_most };
    Judgement {
        plan: plan(),
        promise: Promise::PassesOn,
        acquisitions: tally(9_100, 40, 5),
        updates: BTreeMap::from([
            (Guard::Bare, updates(tally(9_090, 0, 10), 31, 0.0048)),
            (Guard::Deadline, updates(tally(9_050, 40, 10), 2, 0.000_8)),
            (Guard::FencedWrites, updates(tally(9_060, 30, 10), 4, 0.001_1)),
            (Guard::Fenced, updates(tally(9_000, 90, 10), 0, 0.000_333)),
        ]),
        checks: vec![
            finding("fenced-registers-lose-nothing", Outcome::Passed, "0 lost of 9,000", &[]),
            finding("holds-exclude", Outcome::Reported, "12 of 9,100 overlap", &["lock 1: <b> & \"worker 1.0\""]),
            finding("cells-are-linearizable", Outcome::NotRun, "no cell was called", &[]),
        ],
        figures: Figures {
            ran_ms: 120_320,
            per_second_outside: 81.4,
            hurt_ms: 30_100,
            faults: 12,
            longest_stuck_ms: 2_345,
            stuck_bound_ms: 3_501,
            wait_p50_us: 812,
            wait_p99_us: 45_100,
            push_share: Some(0.981),
            fairness: 0.9934,
            recovery: Some(Recovery { times: 3, least_ms: 1_040, median_ms: 1_500, most_ms: 2_310, bound_ms: 3_501 }),
        },
    }
}

pub fn failed() -> Judgement {
    let mut judgement = judgement();
    let evidence = ["lock 1: 17 was written twice", "b", "c", "d", "e", "f", "g"];
    judgement.checks[0] = finding("fenced-registers-lose-nothing", Outcome::Failed, "2 lost of 9,000", &evidence);
    judgement.checks.push(finding("tokens-rise", Outcome::Passed, "9,100 tokens", &[]));
    judgement
}
