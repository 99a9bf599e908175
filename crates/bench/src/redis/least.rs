//! The least that a hand-over by scripts can cost: a line of claims with leases and numbers, and nothing else, from a bare
//! client. Between this and a bare token in a list is what a line costs; between this and ours, what ours does besides.

use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, IntoConnectionInfo, ProtocolVersion, PushInfo, PushKind};
use tokio::sync::Notify;

use super::wire::LEASE_MS;
use crate::handed::{Event, Noted};
use crate::player::{PATIENCE, Player};
use crate::turns::{Game, Two, player, runtime};
use crate::{Outcome, machine};

/// Two processes with such a line.
pub fn two(game: Game, url: &str) -> Outcome<Two> {
    let start = |role| Player::own(&["redis", "least", url, game.mode(), role])?.when_ready();
    Ok(Two::of(game, [start("0")?, start("1")?]))
}

/// The hidden mode of one of them.
pub fn child(url: &str, game: Game, role: usize) -> Outcome<()> {
    let runtime = runtime()?;
    let line = runtime.block_on(Line::open(url, role))?;
    player(&runtime, game, |end| play(line.clone(), game, end))
}

#[derive(Clone)]
struct Line {
    connection: MultiplexedConnection,
    /// Rung when it is told that it is in.
    bell: Arc<Notify>,
    enter: Cmd,
    leave: Cmd,
}

impl Line {
    async fn open(url: &str, role: usize) -> Outcome<Self> {
        let bell = Arc::new(Notify::new());
        let rung = bell.clone();
        let hear = move |news: PushInfo| {
            if news.kind == PushKind::Message {
                rung.notify_one();
            }
            Ok::<(), ()>(())
        };
        let config = AsyncConnectionConfig::new().set_response_timeout(None).set_push_sender(hear);
        let info = url.into_connection_info()?;
        let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let nodelay = redis::io::tcp::TcpSettings::default().set_nodelay(true);
        let info = info.set_redis_settings(settings).set_tcp_settings(nodelay);
        let mut connection = Client::open(info)?.get_multiplexed_async_connection_with_config(&config).await?;
        let channel = format!("least-{role}");
        connection.subscribe(&channel).await?;
        let mut calls = Vec::new();
        for text in [include_str!("scripts/least_enter.lua"), include_str!("scripts/least_leave.lua")] {
            let script: String = redis::cmd("SCRIPT").arg("LOAD").arg(text).query_async(&mut connection).await?;
            let mut call = redis::cmd("EVALSHA");
            call.arg(script).arg(4);
            for key in ["{least}", "{least}:line", "{least}:wait", "{least}:ends"] {
                call.arg(key);
            }
            call.arg(format!("{role:032x}")).arg(&channel).arg(LEASE_MS);
            calls.push(call);
        }
        let [enter, leave] = <[Cmd; 2]>::try_from(calls).map_err(|_| "two scripts were expected")?;
        Ok(Self { connection, bell, enter, leave })
    }

    /// Comes in, or waits until it is told so.
    async fn comes_in(&mut self, is_in: bool) -> Outcome<()> {
        if is_in {
            return Ok(());
        }
        Ok(tokio::time::timeout(PATIENCE, self.bell.notified()).await?)
    }
}

async fn play(mut line: Line, game: Game, end: Instant) -> Outcome<Vec<Noted>> {
    let ((held_for, rest), mut noted) = (game.pace(), Vec::new());
    let mut is_in: bool = line.enter.query_async(&mut line.connection).await?;
    loop {
        line.comes_in(is_in).await?;
        noted.push((machine::boottime_nanos(), Event::Taken));
        pause(held_for).await;
        noted.push((machine::boottime_nanos(), Event::Passed));
        if Instant::now() >= end {
            let _: bool = line.leave.query_async(&mut line.connection).await?;
            return Ok(noted);
        }
        if rest.is_zero() {
            // It leaves and comes into the line again by one write.
            let mut both = redis::pipe();
            both.add_command(line.leave.clone()).add_command(line.enter.clone());
            (_, is_in) = both.query_async::<(bool, bool)>(&mut line.connection).await?;
        } else {
            let _: bool = line.leave.query_async(&mut line.connection).await?;
            pause(rest).await;
            is_in = line.enter.query_async(&mut line.connection).await?;
        }
    }
}

async fn pause(length: Duration) {
    if !length.is_zero() {
        tokio::time::sleep(length).await;
    }
}
