//! The baseline for one name and two processes: a token in a list. `BLPOP` takes it, `LPUSH` passes it on.

use std::time::Instant;

use redis::aio::MultiplexedConnection;
use redis::{AsyncCommands, Commands};

use super::wire;
use crate::handed::{Event, Noted};
use crate::player::Player;
use crate::turns::{Game, Two, player, runtime};
use crate::{Outcome, machine};

/// How long the bare client blocks before it looks at the clock.
const BLOCKS_FOR_S: f64 = 0.2;

/// Two processes with the bare token.
pub fn token(game: Game, url: &str) -> Outcome<Two> {
    let start = |role| Player::own(&["redis", "token", url, game.mode(), role])?.when_ready();
    let mut connection = wire::connect_alone(url)?;
    let players = [start("0")?, start("1")?];
    Ok(Two::of(game, players).cleared(move || Ok(connection.del(&[list(0), list(1)])?)))
}

fn list(role: usize) -> String {
    format!("token-{role}")
}

/// The hidden mode of a bare client: takes the token from its list and puts it into the other's. It is a task, as ours
/// is; a thread that blocks on its socket was no faster in trials.
pub fn child(url: &str, game: Game, role: usize) -> Outcome<()> {
    let keys = [list(role), list(1 - role)];
    let runtime = runtime()?;
    let connection = runtime.block_on(wire::connect(url, true))?;
    player(&runtime, game, |end| pass_on(connection.clone(), keys.clone(), game, role == 0, end))
}

async fn pass_on(
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
