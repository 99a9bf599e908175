//! The judge on trial: stand-ins play, honest or with one fault, and the judge must let the honest pass and catch each
//! fault.
//!
//! The surprise: a fault must be caught by the check that is there for it. A stand-in that merely crashed is not caught.

use std::time::Duration;

use lockkeeper_rig::Trouble;

use super::cases::{CASES, Case, Needs, Scene};
use super::party::Program;
use super::race::{AWAY_MS, Terms, race};

/// Fault on our side, fault on the peer's, what they play, what the judge must say.
const FAULTS: &[(&str, &str, &str, &str)] = &[
    ("", "blind-set", "race", "which was still in"),
    ("blind-set", "", "race", "which was still in"),
    ("", "blind-release", "a_stopped_peer_frees_nothing_of_ours", "says `release: ok`"),
    ("", "blind-release", "a_late_peer_neither_frees_nor_extends_ours", "says `release: ok`"),
    ("", "blind-extend", "a_late_peer_neither_frees_nor_extends_ours", "says `extend: ok`"),
    ("", "mute blind-release", "a_stopped_peer_frees_nothing_of_ours", "the key of ours was gone"),
    ("", "blind-set", "the_peer_is_in_when_the_lease_of_ours_killed_ends", "before the lease of the other ended"),
    ("no-lease", "", "the_peer_is_in_when_the_lease_of_ours_killed_ends", "has no lease"),
    ("blind-set", "", "ours_is_in_when_the_lease_of_a_killed_peer_ends", "before the lease of the other ended"),
    ("no-renewal", "", "renewals_of_ours_keep_the_peer_out", "the peer came in while ours held"),
    ("", "blind-set", "renewals_of_ours_keep_the_peer_out", "the peer came in while ours held"),
    ("blind-set", "", "extensions_of_the_peer_keep_ours_out", "ours came in while the peer held"),
    ("blind-release", "", "ours_stopped_frees_nothing_of_the_peer", "says `release: ok`"),
    ("mute blind-release", "", "ours_stopped_frees_nothing_of_the_peer", "changed the key of another"),
    ("blind-release", "", "ours_robbed_frees_nothing_of_the_peer", "says `release: ok`"),
    ("blind-extend", "", "renewals_of_ours_robbed_take_nothing_back", "changed the key of another"),
    ("no-renewal", "", "renewals_of_ours_robbed_take_nothing_back", "did not say so"),
    ("mute blind-release", "", "a_robbed_line_of_ours_frees_nothing", "changed the key of another"),
    ("no-clock", "", "ours_stopped_frees_nothing_of_the_peer", "ours still believes"),
];

/// What honest ones race for, and what a blind one gets to meet somebody inside; its race is over when it did.
const HONEST: Terms = Terms { handovers: 20, ours_away_ms: AWAY_MS, at_most: Duration::from_secs(30) };
const BLIND: Terms = Terms { handovers: 1000, ..HONEST };

/// One trial: what it is called, and how it went.
pub struct Trial<'a> {
    pub name: String,
    stand_in: &'a Program,
    ours: &'static str,
    peer: &'static str,
    plays: &'static str,
    /// Nothing for the honest.
    caught_by: Option<&'static str>,
}

/// All trials.
pub fn trials(stand_in: &Program) -> Vec<Trial<'_>> {
    let honest = ["race"].into_iter().chain(CASES.iter().filter(|case| is_for_stand_ins(case)).map(|case| case.name));
    let honest = honest.map(|plays| Trial {
        name: format!("two honest ones pass {plays}"),
        stand_in,
        ours: "",
        peer: "",
        plays,
        caught_by: None,
    });
    let faulty = FAULTS.iter().map(|(ours, peer, plays, caught_by)| {
        let whose = if ours.is_empty() { format!("`{peer}` of the peer") } else { format!("`{ours}` of ours") };
        let name = format!("{whose} is caught by {plays}");
        Trial { name, stand_in, ours, peer, plays, caught_by: Some(caught_by) }
    });
    honest.chain(faulty).collect()
}

/// What stand-ins can play: they have leases always, and cannot share.
fn is_for_stand_ins(case: &Case) -> bool {
    case.needs == Needs::Nothing
}

impl Trial<'_> {
    /// Plays it on a key of its own.
    pub fn run(&self, port: u16, number: usize) -> Result<(), Trouble> {
        let told = |words: String| {
            let after = words.split_whitespace().map(str::to_string).collect();
            Program { after, ..self.stand_in.clone() }
        };
        let ours = Program { name: "ours".to_string(), ..told(format!("renews {}", self.ours)) };
        let peer = told(self.peer.to_string());
        let played = self.play(port, &format!("self-test/{number}"), &ours, &peer);
        match (self.caught_by, played) {
            (None, played) => played,
            (Some(words), Err(trouble)) if trouble.to_string().contains(words) => Ok(()),
            (Some(words), Err(trouble)) => {
                Err(Trouble::new(format!("the judge was to say `{words}`, but said: {trouble}")))
            }
            (Some(_), Ok(())) => Err(Trouble::new("the judge did not notice")),
        }
    }

    fn play(&self, port: u16, key: &str, ours: &Program, peer: &Program) -> Result<(), Trouble> {
        if self.plays == "race" {
            let terms = if self.caught_by.is_none() { HONEST } else { BLIND };
            return race(ours, peer, port, key, terms)?.verdict(&terms);
        }
        let case = CASES.iter().find(|case| case.name == self.plays);
        let case = case.ok_or_else(|| Trouble::new(format!("there is no case `{}`", self.plays)))?;
        (case.play)(&Scene { port, key: key.to_string(), ours, peer, sharing: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_for_stand_ins_has_a_fault_to_catch() {
        for case in CASES.iter().filter(|case| is_for_stand_ins(case)) {
            assert!(FAULTS.iter().any(|(_, _, plays, _)| *plays == case.name), "{}", case.name);
        }
        for (ours, peer, plays, _) in FAULTS {
            assert!(*plays == "race" || CASES.iter().any(|case| case.name == *plays), "{plays}");
            assert!(ours.is_empty() != peer.is_empty(), "one fault at a time: {ours} {peer}");
        }
    }
}
