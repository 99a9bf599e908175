//! One name, two processes: how often a second it passes from one to the other, and how long that takes.
//!
//! The baseline is a token in a list: `BLPOP` takes it, `LPUSH` passes it on. Surprise: only the changes of the holder's
//! *process* count. Most of what a polling client reports is one task that takes its own lock again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lockkeeper::Keeper;
use redis::aio::MultiplexedConnection;
use redis::{AsyncCommands, Commands, Connection};
use tokio::task::JoinSet;

use super::pairs::name;
use super::wire;
use crate::handed::{Event, Noted, changes, hand_overs, read_noted, write_noted};
use crate::harness::{Arm, Work};
use crate::player::{PATIENCE, Player, read_answer};
use crate::stats::quantile;
use crate::{Outcome, machine};

/// How many tasks of each process want the lock.
const TASKS: usize = 8;
/// How long the ball is held: long enough for the other one to ask for it again.
const HELD_FOR: Duration = Duration::from_millis(4);
/// How long the one that released it rests before it asks again.
const REST: Duration = Duration::from_millis(1);
/// How long the bare client blocks before it looks at the clock.
const BLOCKS_FOR_S: f64 = 0.2;

/// Two processes that want one lock.
pub struct Two {
    players: [Player; 2],
    /// What is done before each slice.
    clear: Option<Connection>,
    game: Game,
}

/// What they do with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Game {
    /// As often as they can.
    Turns,
    /// At leisure, so that the other one always waits: what counts is the time between release and taking.
    Ball,
}

impl Game {
    /// Its name on command lines.
    pub fn mode(self) -> &'static str {
        match self {
            Self::Turns => "turns",
            Self::Ball => "ball",
        }
    }

    /// How long it is held, and how long the one that released it rests.
    fn pace(self) -> (Duration, Duration) {
        match self {
            Self::Turns => (Duration::ZERO, Duration::ZERO),
            Self::Ball => (HELD_FOR, REST),
        }
    }
}

impl Two {
    /// Two that are ready to play.
    pub fn of(game: Game, players: [Player; 2]) -> Self {
        Self { players, clear: None, game }
    }

    /// The whole client, twice.
    pub fn ours(game: Game, url: &str, hand_over: bool) -> Outcome<Self> {
        let start = || Player::own(&["redis", game.mode(), url, &hand_over.to_string()])?.when_ready();
        Ok(Self::of(game, [start()?, start()?]))
    }

    /// The bare token.
    pub fn token(game: Game, url: &str) -> Outcome<Self> {
        let start = |role| Player::own(&["redis", "token", url, game.mode(), role])?.when_ready();
        let clear = wire::connect_alone(url)?;
        Ok(Self { players: [start("0")?, start("1")?], clear: Some(clear), game })
    }
}

impl Arm for Two {
    fn run(&mut self, length: Duration) -> Outcome<Work> {
        if let Some(connection) = &mut self.clear {
            let _: () = connection.del(&[list(0), list(1)])?;
        }
        for player in &mut self.players {
            player.order(&length.as_millis().to_string())?;
        }
        let lines = [self.players[0].answer(length)?, self.players[1].answer(length)?];
        let [(first_cpu, first), (second_cpu, second)] = [read_answer(&lines[0])?, read_answer(&lines[1])?];
        let cpu = first_cpu + second_cpu;
        match self.game {
            Game::Turns => {
                let count = changes([&takings(first)?, &takings(second)?]);
                Ok(Work { score: count as f64 / length.as_secs_f64(), count, cpu, p99: None })
            }
            Game::Ball => {
                let took = hand_overs([&noted(first)?, &noted(second)?]);
                let (p50, p99) = (quantile(&took, 0.5), quantile(&took, 0.99));
                Ok(Work { score: p50, count: took.len() as u64, cpu, p99: Some(p99) })
            }
        }
    }
}

fn takings(words: &str) -> Outcome<Vec<u64>> {
    Ok(words.split_whitespace().map(str::parse).collect::<Result<_, _>>()?)
}

fn noted(words: &str) -> Outcome<Vec<Noted>> {
    Ok(read_noted(words).ok_or("a child's notes cannot be read")?)
}

/// Plays whenever a line with the length of a slice comes.
fn orders(mut play: impl FnMut(Duration) -> Outcome<String>) -> Outcome<()> {
    println!("ready");
    for line in std::io::stdin().lines() {
        let length = Duration::from_millis(line?.parse()?);
        println!("{}", play(length)?);
    }
    Ok(())
}

/// The hidden mode of one of ours.
pub fn play(game: Game, url: &str, hand_over: bool) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let store = runtime.block_on(lockkeeper::open(url))?;
    let keeper: Keeper = Keeper::builder().hand_over(hand_over).with_store(store).into();
    orders(|length| {
        let (cpu, end) = (machine::process_cpu(), Instant::now() + length);
        let keeper = keeper.clone();
        match game {
            Game::Turns => {
                let words = runtime.block_on(runtime.spawn(turns(keeper, end)))??;
                Ok(format!("{} {words}", machine::process_cpu().saturating_sub(cpu).as_nanos()))
            }
            Game::Ball => {
                let noted = runtime.block_on(runtime.spawn(ball(keeper, end)))??;
                Ok(write_noted(machine::process_cpu().saturating_sub(cpu), &noted))
            }
        }
    })?;
    runtime.block_on(keeper.close())?;
    Ok(())
}

async fn turns(keeper: Keeper, end: Instant) -> Outcome<String> {
    let name: Arc<str> = name(0).into();
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let (keeper, name) = (keeper.clone(), name.clone());
        tasks.spawn(async move {
            let mut taken = Vec::new();
            while Instant::now() < end {
                let hold = keeper.mutex(&name).wait(PATIENCE).lock().await?;
                taken.push(machine::boottime_nanos());
                hold.release().await?;
            }
            Outcome::Ok(taken)
        });
    }
    let mut words = Vec::new();
    while let Some(taken) = tasks.join_next().await {
        words.extend(taken??.iter().map(u64::to_string));
    }
    Ok(words.join(" "))
}

async fn ball(keeper: Keeper, end: Instant) -> Outcome<Vec<Noted>> {
    let (name, mut noted) = (name(0), Vec::new());
    let ball = keeper.mutex(&name).wait(PATIENCE);
    while Instant::now() < end {
        let hold = ball.lock().await?;
        noted.push((machine::boottime_nanos(), Event::Taken));
        tokio::time::sleep(HELD_FOR).await;
        noted.push((machine::boottime_nanos(), Event::Passed));
        hold.release().await?;
        tokio::time::sleep(REST).await;
    }
    Ok(noted)
}

fn list(role: usize) -> String {
    format!("token-{role}")
}

/// The hidden mode of a bare client: takes the token from its list and puts it into the other's. It is a task, as ours
/// is; a thread that blocks on its socket was no faster in trials.
pub fn token(url: &str, game: Game, role: usize) -> Outcome<()> {
    let keys = [list(role), list(1 - role)];
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let connection = runtime.block_on(wire::connect(url, true))?;
    orders(|length| {
        let (cpu, end) = (machine::process_cpu(), Instant::now() + length);
        let player = token_task(connection.clone(), keys.clone(), game, role == 0, end);
        let noted = runtime.block_on(runtime.spawn(player))??;
        Ok(token_answer(game, machine::process_cpu().saturating_sub(cpu), &noted))
    })
}

fn token_answer(game: Game, cpu: Duration, noted: &[Noted]) -> String {
    if game == Game::Ball {
        return write_noted(cpu, noted);
    }
    let taken = noted.iter().filter(|(_, event)| *event == Event::Taken).map(|(at, _)| at.to_string());
    format!("{} {}", cpu.as_nanos(), taken.collect::<Vec<_>>().join(" "))
}

async fn token_task(
    mut connection: MultiplexedConnection,
    [own, other]: [String; 2],
    game: Game,
    mut has_it: bool,
    end: Instant,
) -> Outcome<Vec<Noted>> {
    let ((held_for, rest), mut noted) = (game.pace(), Vec::new());
    while Instant::now() < end {
        if !has_it {
            let taken: Option<(String, String)> = connection.blpop(&own, BLOCKS_FOR_S).await?;
            if taken.is_none() {
                continue;
            }
            noted.push((machine::boottime_nanos(), Event::Taken));
        }
        if !held_for.is_zero() {
            tokio::time::sleep(held_for).await;
        }
        noted.push((machine::boottime_nanos(), Event::Passed));
        let _: () = connection.lpush(&other, "token").await?;
        has_it = false;
        if !rest.is_zero() {
            tokio::time::sleep(rest).await;
        }
    }
    Ok(noted)
}
