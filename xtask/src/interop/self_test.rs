//! The judge on trial: stand-ins play, honest or with one fault, and the judge must let the honest pass and catch each
//! fault.
//!
//! The surprise: a fault must be caught by the check that is there for it. A stand-in that merely crashed is not caught.

use std::time::Duration;

use lockkeeper_rig::Trouble;

use super::cases::{Case, Needs, Scene};
use super::family::{Family, Ground};
use super::party::Program;
use super::race::{AWAY_MS, Terms, race};

/// Fault on our side, fault on the peer's, what they play, what the judge must say.
pub type Fault = (&'static str, &'static str, &'static str, &'static str);

/// What honest ones race for, and what a blind one gets to meet somebody inside; its race is over when it did.
const HONEST: Terms = Terms { handovers: 20, ours_away_ms: AWAY_MS, at_most: Duration::from_secs(30) };
const BLIND: Terms = Terms { handovers: 1000, ..HONEST };

/// One trial: what it is called, and how it went.
pub struct Trial<'a> {
    pub name: String,
    family: &'static Family,
    stand_in: &'a Program,
    ours: &'static str,
    peer: &'static str,
    plays: &'static str,
    /// Nothing for the honest.
    caught_by: Option<&'static str>,
}

/// All trials of a family.
pub fn trials<'a>(family: &'static Family, stand_in: &'a Program) -> Vec<Trial<'a>> {
    let cases = family.cases().filter(|case| is_for_stand_ins(case)).map(|case| case.name);
    let honest = ["race"].into_iter().chain(cases).map(|plays| Trial {
        name: format!("two honest ones pass {plays}"),
        family,
        stand_in,
        ours: "",
        peer: "",
        plays,
        caught_by: None,
    });
    let faulty = family.faults.iter().map(|(ours, peer, plays, caught_by)| {
        let whose = if ours.is_empty() { format!("`{peer}` of the peer") } else { format!("`{ours}` of ours") };
        let name = format!("{whose} is caught by {plays}");
        Trial { name, family, stand_in, ours, peer, plays, caught_by: Some(caught_by) }
    });
    honest.chain(faulty).collect()
}

/// What stand-ins can play: they have leases always, and cannot share.
fn is_for_stand_ins(case: &Case) -> bool {
    matches!(case.needs, Needs::Nothing | Needs::OneProcess)
}

impl Trial<'_> {
    /// Plays it on a key of its own.
    pub fn run(&self, port: u16, number: usize) -> Result<(), Trouble> {
        let told = |first: &'static str, then: &'static str| {
            let words: Vec<&str> = first.split_whitespace().chain(then.split_whitespace()).collect();
            self.stand_in.told(&words)
        };
        let ours = Program { name: "ours".to_string(), ..told(self.family.as_ours, self.ours) };
        let peer = told(self.family.as_peer, self.peer);
        let ground = Ground { family: self.family, port };
        let played = self.play(ground, &format!("self-test/{number}"), &ours, &peer);
        match (self.caught_by, played) {
            (None, played) => played,
            (Some(words), Err(trouble)) if trouble.to_string().contains(words) => Ok(()),
            (Some(words), Err(trouble)) => {
                Err(Trouble::new(format!("the judge was to say `{words}`, but said: {trouble}")))
            }
            (Some(_), Ok(())) => Err(Trouble::new("the judge did not notice")),
        }
    }

    fn play(&self, ground: Ground, key: &str, ours: &Program, peer: &Program) -> Result<(), Trouble> {
        if self.plays == "race" {
            let terms = if self.caught_by.is_none() { HONEST } else { BLIND };
            return race(ours, peer, ground, key, terms)?.verdict(&terms);
        }
        let case = self.family.cases().find(|case| case.name == self.plays);
        let case = case.ok_or_else(|| Trouble::new(format!("there is no case `{}`", self.plays)))?;
        (case.play)(&Scene { ground, key: key.to_string(), ours, peer, sharing: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interop::family::FAMILIES;

    #[test]
    fn every_case_for_stand_ins_has_a_fault_to_catch() {
        for family in FAMILIES {
            for case in family.cases().filter(|case| is_for_stand_ins(case)) {
                assert!(family.faults.iter().any(|(_, _, plays, _)| *plays == case.name), "{}", case.name);
            }
            for (ours, peer, plays, _) in family.faults {
                assert!(*plays == "race" || family.cases().any(|case| case.name == *plays), "{plays}");
                assert!(ours.is_empty() != peer.is_empty(), "one fault at a time: {ours} {peer}");
            }
        }
    }
}
