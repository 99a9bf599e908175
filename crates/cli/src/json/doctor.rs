//! What `doctor` prints.

use lockkeeper::checkup::{Fact, Finding, Promised, Report, Unmet};
use serde::Serialize;

/// What `doctor` prints.
#[derive(Debug, Serialize)]
pub struct Doctor {
    schema: &'static str,
    store: String,
    address: String,
    /// The level of the worst finding: `good`, `note`, `warning` or `danger`.
    worst: &'static str,
    facts: Vec<Known>,
    findings: Vec<Found>,
    promises: Vec<Kept>,
    /// What was required and is not promised.
    unmet: Vec<Missing>,
    /// What may be trusted, in words.
    trust: String,
}

#[derive(Debug, Serialize)]
struct Known {
    topic: &'static str,
    value: String,
}

#[derive(Debug, Serialize)]
struct Found {
    topic: &'static str,
    level: &'static str,
    found: String,
    means: Option<String>,
    change: Option<String>,
}

#[derive(Debug, Serialize)]
struct Kept {
    promise: &'static str,
    /// `yes`, `no` or `unknown`.
    kept: &'static str,
    why: String,
    change: Option<String>,
}

#[derive(Debug, Serialize)]
struct Missing {
    require: String,
    why: String,
    change: Option<String>,
}

impl Doctor {
    /// A report, and what is missing.
    pub fn new(report: &Report, unmet: &[Unmet]) -> Self {
        Self {
            schema: "lockkeeper.doctor/1",
            store: report.store.to_owned(),
            address: report.address.clone(),
            worst: report.worst().as_str(),
            facts: report.facts.iter().map(Known::new).collect(),
            findings: report.findings.iter().map(Found::new).collect(),
            promises: report.promises.iter().map(Kept::new).collect(),
            unmet: unmet.iter().map(Missing::new).collect(),
            trust: report.trust(),
        }
    }
}

impl Known {
    fn new(fact: &Fact) -> Self {
        Self { topic: fact.topic, value: fact.value.clone() }
    }
}

impl Found {
    fn new(finding: &Finding) -> Self {
        Self {
            topic: finding.topic,
            level: finding.level.as_str(),
            found: finding.found.clone(),
            means: Some(finding.means.clone()).filter(|means| !means.is_empty()),
            change: finding.change.clone(),
        }
    }
}

impl Kept {
    fn new(promised: &Promised) -> Self {
        Self {
            promise: promised.promise.as_str(),
            kept: promised.kept.as_str(),
            why: promised.why.clone(),
            change: promised.change.clone(),
        }
    }
}

impl Missing {
    fn new(unmet: &Unmet) -> Self {
        Self { require: unmet.requirement.to_string(), why: unmet.why.clone(), change: unmet.change.clone() }
    }
}
