//! One lock between two processes: from just before `release()` is called in the one to `lock()` returned in the
//! other, which has been standing in line. Against the two commits that this takes at the least.
//!
//! Surprise: the pace is that of people taking turns. After a hand-over both pause a little, so that the one who released
//! does not stand in line again in the middle of the next measurement. The baseline keeps the same pace.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lockkeeper_sqlite::Sync;

use super::raw::{Raw, RawClaim};
use crate::handed::{Event, Noted, hand_overs, read_noted, write_noted};
use crate::harness::{Arm, Work};
use crate::player::{PATIENCE, Player, read_answer};
use crate::stats::quantile;
use crate::{Outcome, machine};

/// The lock that goes back and forth.
const BALL: &str = "orders/item-00000000";
/// How long both rest after a hand-over.
const REST: Duration = Duration::from_millis(2);

/// Two processes with the whole client.
pub struct Ours {
    players: [Player; 2],
}

impl Ours {
    /// Starts both on one new file.
    pub fn start(path: &Path) -> Outcome<Self> {
        let path = path.to_str().ok_or("the path is not UTF-8")?;
        Ok(Self { players: [Player::own(&["handover", path])?, Player::own(&["handover", path])?] })
    }
}

impl Arm for Ours {
    fn run(&mut self, length: Duration) -> Outcome<Work> {
        self.players[0].order(&format!("{} 1", length.as_millis()))?;
        self.players[1].order(&format!("{} 0", length.as_millis()))?;
        let answer = |player: &Player| -> Outcome<(Duration, Vec<Noted>)> {
            let line = player.answer(length)?;
            let (cpu, words) = read_answer(&line)?;
            Ok((cpu, read_noted(words).ok_or("a child's notes cannot be read")?))
        };
        let (first, second) = (answer(&self.players[0])?, answer(&self.players[1])?);
        let took = hand_overs([&first.1, &second.1]);
        Ok(work(&took, first.0 + second.0))
    }
}

fn work(took: &[f64], cpu: Duration) -> Work {
    Work { score: quantile(took, 0.5), count: took.len() as u64, cpu, p99: Some(quantile(took, 0.99)) }
}

/// The two commits, one right after the other on one connection.
pub struct Bare {
    raw: Raw,
    rounds: u64,
    rest: Duration,
}

impl Bare {
    /// A new file. `paced` rests between pairs as the two processes do.
    pub fn create(path: &Path, paced: bool) -> Outcome<Self> {
        Ok(Self { raw: Raw::create(path, Sync::Full)?, rounds: 0, rest: if paced { REST } else { Duration::ZERO } })
    }

    /// The holder leaves, the one in line is in; before that, unmeasured, somebody comes into the line.
    fn round(&mut self) -> Outcome<Duration> {
        let lock = format!("lockkeeper/{BALL}");
        let id = |round: u64| u128::from(round).to_be_bytes();
        let (holder, waiter) = (id(self.rounds), id(self.rounds + 1));
        self.raw.begin()?;
        self.raw.enter(&lock, RawClaim { id: holder, held: true })?;
        self.raw.enter(&lock, RawClaim { id: waiter, held: false })?;
        self.raw.commit()?;
        std::thread::sleep(self.rest);
        let started = machine::boottime_nanos();
        self.raw.begin()?;
        self.raw.leave(&lock, holder)?;
        self.raw.commit()?;
        self.raw.begin()?;
        self.raw.enter(&lock, RawClaim { id: waiter, held: true })?;
        self.raw.commit()?;
        let took = Duration::from_nanos(machine::boottime_nanos() - started);
        self.rounds += 1;
        std::thread::sleep(self.rest);
        Ok(took)
    }
}

impl Arm for Bare {
    fn run(&mut self, length: Duration) -> Outcome<Work> {
        let (end, cpu) = (Instant::now() + length, machine::process_cpu());
        let mut took = Vec::new();
        while Instant::now() < end {
            took.push(self.round()?.as_secs_f64() * 1e6);
        }
        Ok(work(&took, machine::process_cpu().saturating_sub(cpu)))
    }
}

/// The hidden mode of a player: plays whenever a line with the length and the role comes.
pub fn child(path: &str) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let keeper = runtime.block_on(super::keeper(&PathBuf::from(path), Sync::Full))?;
    for line in std::io::stdin().lines() {
        let line = line?;
        let (millis, first) = line.split_once(' ').ok_or("an order has two words")?;
        let cpu = machine::process_cpu();
        let noted = runtime.block_on(play(&keeper, Duration::from_millis(millis.parse()?), first == "1"))?;
        println!("{}", write_noted(machine::process_cpu().saturating_sub(cpu), &noted));
    }
    runtime.block_on(keeper.close())?;
    Ok(())
}

async fn play(keeper: &lockkeeper::Keeper, length: Duration, first: bool) -> Outcome<Vec<Noted>> {
    let (end, mut noted) = (Instant::now() + length, Vec::new());
    let ball = keeper.mutex(BALL).wait(PATIENCE);
    if !first {
        tokio::time::sleep(REST).await;
    }
    while Instant::now() < end {
        let hold = ball.lock().await?;
        noted.push((machine::boottime_nanos(), Event::Taken));
        let mut event = Event::Dropped;
        while event == Event::Dropped && Instant::now() < end {
            tokio::time::sleep(REST).await;
            if keeper.inspect(BALL).await?.is_some_and(|line| line.claims.len() > 1) {
                event = Event::Passed;
                // Being in line is not yet listening: the other one has to hear of it first.
                tokio::time::sleep(REST).await;
            }
        }
        noted.push((machine::boottime_nanos(), event));
        hold.release().await?;
        tokio::time::sleep(REST).await;
    }
    Ok(noted)
}
