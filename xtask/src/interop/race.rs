//! The race: two parties of each side want one lock at once, again and again, until it has passed between the *sides* often
//! enough.
//!
//! The surprise: a party that released stays away for a while. Two of ours that never pause keep a line that never
//! empties, and while it stands a plain lock cannot get in: that is our right, and would prove nothing.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lockkeeper_rig::Trouble;

use super::family::Ground;
use super::log::{Overlap, overlaps};
use super::party::{Answer, Party, Program};
use super::witness::{Witness, shown};

/// Long against every pause of a busy machine: nobody's lease may end in a race.
const LEASE: Duration = Duration::from_secs(30);
/// How long each is inside.
const STAYS_MS: (u64, u64) = (1, 6);
/// How long each stays away after a release.
pub const AWAY_MS: (u64, u64) = (5, 40);
/// How long ours must stay away to forget that it found the lock taken, so that it tries its fast lane again.
pub const FORGETS_MS: (u64, u64) = (260, 330);
/// What the key begins with while ours is in by its fast lane, and while there is a line of ours.
const FAST: &[u8] = b"lk1:";
const LINE: &[u8] = b"lk1=";
/// How many overlaps, and how many other wrongs, are told.
const TOLD: usize = 5;

/// What is raced for.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// How often the lock must pass between the sides.
    pub handovers: u32,
    /// How long ours stays away after a release.
    pub ours_away_ms: (u64, u64),
    /// After this the race has failed.
    pub at_most: Duration,
}

/// How it went.
#[derive(Debug)]
pub struct Outcome {
    pub handovers: u32,
    pub turns: usize,
    /// How many of them ours had by its fast lane, and how many by its line.
    pub ours: (u32, u32),
    pub overlaps: Vec<Overlap>,
    /// Anything else that must not be: a lock that was lost, a key that was gone, a party that died.
    pub wrongs: Vec<String>,
    pub took: Duration,
}

impl Outcome {
    /// What was wrong, if anything was.
    pub fn verdict(&self, terms: &Terms) -> Result<(), Trouble> {
        let overlaps: Vec<String> = self.overlaps.iter().map(Overlap::to_string).collect();
        let mut wrongs = Vec::new();
        for (found, what) in [(&overlaps, "overlaps"), (&self.wrongs, "wrongs")] {
            wrongs.extend(found.iter().take(TOLD).cloned());
            if found.len() > TOLD {
                wrongs.push(format!("and {} {what} more", found.len() - TOLD));
            }
        }
        if wrongs.is_empty() && self.handovers < terms.handovers {
            let (had, seconds) = (self.handovers, self.took.as_secs());
            wrongs.push(format!("only {had} hand-overs in {seconds} s, where {} were to be", terms.handovers));
        }
        if wrongs.is_empty() { Ok(()) } else { Err(Trouble::new(wrongs.join("\n"))) }
    }
}

/// What the racers share.
struct Course {
    ground: Ground,
    key: String,
    terms: Terms,
    began: Instant,
    handovers: AtomicU32,
    fast: AtomicU32,
    line: AtomicU32,
    over: AtomicBool,
    wrongs: Mutex<Vec<String>>,
}

/// Lets two of each side race for `key`.
pub fn race(ours: &Program, peer: &Program, ground: Ground, key: &str, terms: Terms) -> Result<Outcome, Trouble> {
    let mut parties = Vec::new();
    for number in [1, 2] {
        for (program, away_ms) in [(ours, terms.ours_away_ms), (peer, AWAY_MS)] {
            parties.push((Party::ready(program, number, ground, key, LEASE)?, away_ms));
        }
    }
    let course = Course {
        ground,
        key: key.to_string(),
        terms,
        began: Instant::now(),
        handovers: AtomicU32::new(0),
        fast: AtomicU32::new(0),
        line: AtomicU32::new(0),
        over: AtomicBool::new(false),
        wrongs: Mutex::new(Vec::new()),
    };
    thread::scope(|scope| {
        for (seed, (party, away_ms)) in (1..).zip(&mut parties) {
            let course = &course;
            scope.spawn(move || course.run(party, *away_ms, seed));
        }
    });
    let mut witness = ground.witness(key)?;
    let log = witness.log()?;
    if !witness.would_get_in()? {
        course.wrong("the lock was not free after everybody had released it".to_string());
    }
    let ghosts = witness.in_our_line()?;
    if ghosts > 0 {
        course.wrong(format!("{ghosts} of ours still stand in line, and nobody waits"));
    }
    Ok(Outcome {
        handovers: course.handovers.into_inner(),
        ours: (course.fast.into_inner(), course.line.into_inner()),
        turns: log.iter().filter(|event| event.entered).count(),
        overlaps: overlaps(&log),
        wrongs: course.wrongs.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()),
        took: course.began.elapsed(),
    })
}

impl Course {
    /// One party's turns, until the race is over. A party that fails ends it for all.
    fn run(&self, party: &mut Party, away_ms: (u64, u64), seed: u64) {
        let mut dice = Dice(seed);
        let ran = self.ground.witness(&self.key).and_then(|mut witness| {
            while !self.is_over() {
                self.turn(party, &mut *witness, &mut dice)?;
                thread::sleep(dice.millis(away_ms));
            }
            Ok(())
        });
        if let Err(trouble) = ran {
            self.over.store(true, Ordering::Relaxed);
            self.wrong(trouble.to_string());
        }
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
            || self.handovers.load(Ordering::Relaxed) >= self.terms.handovers
            || self.began.elapsed() >= self.terms.at_most
    }

    fn turn(&self, party: &mut Party, witness: &mut dyn Witness, dice: &mut Dice) -> Result<(), Trouble> {
        party.take()?;
        party.is_in(self.terms.at_most)?;
        let (came, is_handover) = witness.enter(&party.name, &party.side)?;
        self.handovers.fetch_add(is_handover.into(), Ordering::Relaxed);
        for (start, count) in [(FAST, &self.fast), (LINE, &self.line)] {
            if came.value.as_ref().is_some_and(|value| value.starts_with(start)) {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
        thread::sleep(dice.millis(STAYS_MS));
        let (went, last) = witness.leave(&party.name)?;
        // The log has more of it; this ends the race at the first sight of it. Anything else that is wrong does not: where
        // a key is overwritten, two are soon inside, and that is what shows best.
        if came.inside != 1 || went.inside != 1 || last != party.name {
            self.over.store(true, Ordering::Relaxed);
        }
        if !party.is_its_own(came.value.as_deref(), went.value.as_deref()) {
            let (first, then) = (shown(came.value.as_deref()), shown(went.value.as_deref()));
            self.wrong(format!(
                "the lock's key was not that of `{}` while it was in: {first}, then {then}",
                party.name
            ));
        }
        if party.release()? == Answer::No {
            self.wrong(format!("`{}` lost the lock while it was in", party.name));
        }
        Ok(())
    }

    fn wrong(&self, what: String) {
        self.wrongs.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(what);
    }
}

/// Numbers without a pattern that matters; the same in every run.
struct Dice(u64);

impl Dice {
    fn millis(&mut self, (least, most): (u64, u64)) -> Duration {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Duration::from_millis(least + (self.0 >> 33) % (most - least + 1))
    }
}
