//! One name, several processes: how often a second it passes from one to the other, and how long that takes.
//!
//! Surprise: where a client may take its own lock again, only the changes of the holder's *process* count: most of what a
//! polling client reports is one task that takes it again and again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lockkeeper::Keeper;
use lockkeeper::store::Store;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::handed::{Event, Noted, changes, hand_overs, read_noted, write_noted};
use crate::harness::{Arm, Work};
use crate::pairs::name;
use crate::player::{PATIENCE, Player, read_answer};
use crate::stats::quantile;
use crate::{Outcome, machine};

/// How many tasks of each process want the lock.
pub const TASKS: usize = 8;
/// How long the ball is held: long enough for the other one to ask for it again.
const HELD_FOR: Duration = Duration::from_millis(4);
/// How long the one that released it rests before it asks again.
const REST: Duration = Duration::from_millis(1);

/// Two processes that want one lock.
pub struct Two {
    players: [Player; 2],
    /// What is done before each slice.
    clear: Option<Box<dyn FnMut() -> Outcome<()>>>,
    game: Game,
}

/// What they do with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Game {
    /// As often as they can; what counts is how often another process has it.
    Turns,
    /// The same at a server that keeps the line in order and where nobody takes a lock again from its own process: every
    /// turn counts. Which of them change the process depends on how two crowds happened to line up, and that stays so.
    Line,
    /// At leisure, so that the other one always waits: what counts is the time between release and taking.
    Ball,
}

impl Game {
    /// Its name on command lines.
    pub fn mode(self) -> &'static str {
        match self {
            Self::Turns | Self::Line => "turns",
            Self::Ball => "ball",
        }
    }

    /// The game of that name.
    pub fn of_mode(mode: &str) -> Self {
        if mode == Self::Turns.mode() { Self::Turns } else { Self::Ball }
    }

    /// How long it is held, and how long the one that released it rests.
    pub fn pace(self) -> (Duration, Duration) {
        match self {
            Self::Turns | Self::Line => (Duration::ZERO, Duration::ZERO),
            Self::Ball => (HELD_FOR, REST),
        }
    }
}

impl Two {
    /// Two that are ready to play.
    pub fn of(game: Game, players: [Player; 2]) -> Self {
        Self { players, clear: None, game }
    }

    /// The whole client, twice; `store` is the hidden mode that leads to [`play`].
    pub fn ours(game: Game, store: &str, url: &str, hand_over: bool) -> Outcome<Self> {
        let start = || Player::own(&[store, game.mode(), url, &hand_over.to_string()])?.when_ready();
        Ok(Self::of(game, [start()?, start()?]))
    }

    /// The same, with something to be done before each slice.
    pub fn cleared(self, clear: impl FnMut() -> Outcome<()> + 'static) -> Self {
        Self { clear: Some(Box::new(clear)), ..self }
    }
}

impl Arm for Two {
    fn run(&mut self, length: Duration) -> Outcome<Work> {
        if let Some(clear) = &mut self.clear {
            clear()?;
        }
        for player in &mut self.players {
            player.order(&length.as_millis().to_string())?;
        }
        let lines = [self.players[0].answer(length)?, self.players[1].answer(length)?];
        let [(first_cpu, first), (second_cpu, second)] = [read_answer(&lines[0])?, read_answer(&lines[1])?];
        let cpu = first_cpu + second_cpu;
        if self.game == Game::Ball {
            let took = hand_overs([&noted(first)?, &noted(second)?]);
            let (p50, p99) = (quantile(&took, 0.5), quantile(&took, 0.99));
            return Ok(Work { score: p50, count: took.len() as u64, cpu, p99: Some(p99) });
        }
        let (first, second) = (takings(first)?, takings(second)?);
        let count = match self.game {
            Game::Line => (first.len() + second.len()) as u64,
            _ => changes([&first, &second]),
        };
        Ok(Work { score: count as f64 / length.as_secs_f64(), count, cpu, p99: None })
    }
}

fn takings(words: &str) -> Outcome<Vec<u64>> {
    Ok(words.split_whitespace().map(str::parse).collect::<Result<_, _>>()?)
}

fn noted(words: &str) -> Outcome<Vec<Noted>> {
    Ok(read_noted(words).ok_or("a child's notes cannot be read")?)
}

/// Where a player runs.
pub fn runtime() -> Outcome<Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}

/// A player: plays whenever a line with the length of a slice comes, and says what it noted.
pub fn player<F>(runtime: &Runtime, game: Game, play: impl Fn(Instant) -> F) -> Outcome<()>
where
    F: Future<Output = Outcome<Vec<Noted>>> + Send + 'static,
{
    println!("ready");
    for line in std::io::stdin().lines() {
        let length = Duration::from_millis(line?.parse()?);
        let cpu = machine::process_cpu();
        let noted = runtime.block_on(runtime.spawn(play(Instant::now() + length)))??;
        println!("{}", answer(game, machine::process_cpu().saturating_sub(cpu), &noted));
    }
    Ok(())
}

fn answer(game: Game, cpu: Duration, noted: &[Noted]) -> String {
    if game == Game::Ball {
        return write_noted(cpu, noted);
    }
    let taken = noted.iter().filter(|(_, event)| *event == Event::Taken).map(|(at, _)| at.to_string());
    format!("{} {}", cpu.as_nanos(), taken.collect::<Vec<_>>().join(" "))
}

/// The hidden mode of one of ours.
pub fn play<E>(game: Game, store: impl Future<Output = Result<Arc<dyn Store>, E>>, hand_over: bool) -> Outcome<()>
where
    E: std::error::Error + Send + Sync + 'static,
{
    let runtime = runtime()?;
    let store = runtime.block_on(store)?;
    let keeper: Keeper = Keeper::builder().hand_over(hand_over).with_store(store).into();
    player(&runtime, game, |end| {
        let keeper = keeper.clone();
        async move { if game == Game::Ball { ball(keeper, end).await } else { turns(keeper, end).await } }
    })?;
    Ok(runtime.block_on(keeper.close())?)
}

async fn turns(keeper: Keeper, end: Instant) -> Outcome<Vec<Noted>> {
    crowd(|_| {
        let keeper = keeper.clone();
        async move {
            let (name, mut noted) = (name(0), Vec::new());
            while Instant::now() < end {
                let hold = keeper.mutex(&name).wait(PATIENCE).lock().await?;
                noted.push((machine::boottime_nanos(), Event::Taken));
                hold.release().await?;
            }
            Ok(noted)
        }
    })
    .await
}

/// All tasks of a process that want the same, and what they noted.
pub async fn crowd<F>(task: impl Fn(usize) -> F) -> Outcome<Vec<Noted>>
where
    F: Future<Output = Outcome<Vec<Noted>>> + Send + 'static,
{
    let mut tasks: JoinSet<Outcome<Vec<Noted>>> = (0..TASKS).map(task).collect();
    let mut all = Vec::new();
    while let Some(noted) = tasks.join_next().await {
        all.extend(noted??);
    }
    Ok(all)
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
