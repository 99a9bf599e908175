//! One lock between two processes: from just before `release()` is called in the one to `lock()` returned in the
//! other, which has been standing in line. Against the two commits that this takes at the least.
//!
//! Surprise: the stamps of two processes can be compared, because both read `CLOCK_BOOTTIME` of one host. The pace
//! is that of people taking turns: after a hand-over both pause a little, so that the one who released does not
//! stand in line again in the middle of the next measurement. The baseline keeps the same pace.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use lockkeeper_sqlite::Sync;

use super::raw::{Raw, RawClaim};
use crate::harness::{Arm, Work};
use crate::stats::quantile;
use crate::{Outcome, machine};

/// The lock that goes back and forth.
const BALL: &str = "orders/item-00000000";
/// How long both rest after a hand-over.
const REST: Duration = Duration::from_millis(2);
/// How long a child may be late before it counts as stuck.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a child notes, with the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    /// `lock()` has returned.
    Taken,
    /// `release()` is about to be called, and the other one stands in line.
    Passed,
    /// `release()` is about to be called, and nobody is known to wait.
    Dropped,
}

impl Event {
    const ALL: [(Self, char); 3] = [(Self::Taken, 'T'), (Self::Passed, 'P'), (Self::Dropped, 'D')];

    fn letter(self) -> char {
        Self::ALL.iter().find(|(event, _)| *event == self).map_or('?', |(_, letter)| *letter)
    }
}

type Noted = (u64, Event);

/// The hand-overs in what two children noted, in microseconds.
fn hand_overs(children: [&[Noted]; 2]) -> Vec<f64> {
    let tagged = |child: usize| children[child].iter().map(move |(at, event)| (*at, child, *event));
    let mut all: Vec<_> = tagged(0).chain(tagged(1)).collect();
    all.sort_by_key(|(at, child, _)| (*at, *child));
    let is_one = |pair: &&[(u64, usize, Event)]| {
        pair[0].2 == Event::Passed && pair[1].2 == Event::Taken && pair[0].1 != pair[1].1
    };
    all.windows(2).filter(is_one).map(|pair| (pair[1].0 - pair[0].0) as f64 / 1e3).collect()
}

/// A child that plays; it is killed when dropped.
struct Player {
    child: Child,
    orders: ChildStdin,
    lines: mpsc::Receiver<String>,
}

impl Player {
    fn start(path: &Path) -> Outcome<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["child", "handover"])
            .arg(path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (orders, said) = (child.stdin.take(), child.stdout.take());
        let (tell, lines) = mpsc::channel();
        let said = BufReader::new(said.ok_or("a child has no output")?);
        std::thread::spawn(move || said.lines().map_while(Result::ok).try_for_each(|line| tell.send(line)));
        Ok(Self { child, orders: orders.ok_or("a child has no input")?, lines })
    }

    fn order(&mut self, length: Duration, first: bool) -> Outcome<()> {
        writeln!(self.orders, "{} {}", length.as_millis(), u8::from(first))?;
        Ok(self.orders.flush()?)
    }

    /// Its processor time, and what it noted.
    fn answer(&self, length: Duration) -> Outcome<(Duration, Vec<Noted>)> {
        let line = self.lines.recv_timeout(length + PATIENCE).map_err(|_| "a child is stuck or gone")?;
        read_answer(&line).ok_or_else(|| format!("a child said: {line}").into())
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn write_answer(cpu: Duration, noted: &[Noted]) -> String {
    let mut line = cpu.as_nanos().to_string();
    for (at, event) in noted {
        line.push_str(&format!(" {}{at}", event.letter()));
    }
    line
}

fn read_answer(line: &str) -> Option<(Duration, Vec<Noted>)> {
    let mut words = line.split(' ');
    let cpu = Duration::from_nanos(words.next()?.parse().ok()?);
    let noted = words.map(|word| {
        let letter = word.chars().next()?;
        let event = Event::ALL.iter().find(|(_, known)| *known == letter)?.0;
        Some((word[1..].parse().ok()?, event))
    });
    Some((cpu, noted.collect::<Option<_>>()?))
}

/// Two processes with the whole client.
pub struct Ours {
    players: [Player; 2],
}

impl Ours {
    /// Starts both on one new file.
    pub fn start(path: &Path) -> Outcome<Self> {
        Ok(Self { players: [Player::start(path)?, Player::start(path)?] })
    }
}

impl Arm for Ours {
    fn run(&mut self, length: Duration) -> Outcome<Work> {
        self.players[0].order(length, true)?;
        self.players[1].order(length, false)?;
        let (first, second) = (self.players[0].answer(length)?, self.players[1].answer(length)?);
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
        println!("{}", write_answer(machine::process_cpu().saturating_sub(cpu), &noted));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_passes_to_the_other_one_count() {
        let one = [(10, Event::Taken), (20_000, Event::Passed), (90_000, Event::Taken), (99_000, Event::Dropped)];
        let two = [(25_000, Event::Taken), (80_000, Event::Passed), (120_000, Event::Taken)];
        assert_eq!(hand_overs([&one, &two]), [5.0, 10.0]);
        assert!(hand_overs([&one, &[]]).is_empty(), "taking it back is no hand-over");
    }

    #[test]
    fn a_childs_line_is_understood() {
        let noted = vec![(7, Event::Taken), (8, Event::Passed), (9, Event::Dropped)];
        let line = write_answer(Duration::from_nanos(5), &noted);
        assert_eq!(line, "5 T7 P8 D9");
        assert_eq!(read_answer(&line), Some((Duration::from_nanos(5), noted)));
        assert_eq!(read_answer("error"), None);
        assert_eq!(read_answer("5 X7"), None);
    }
}
