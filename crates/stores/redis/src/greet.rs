//! Coming in: what is said first on a new connection, and what the server says to that.

use std::io;

use lockkeeper_core::Result;
use redis::{ServerError, Value};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::options::Options;
use crate::resp::{self, Answers};
use crate::stream::Stream;
use crate::trouble;

/// The two versions of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// Without pushed news.
    Old,
    /// With them.
    New,
}

/// Why we are not in.
#[derive(Debug)]
pub(crate) enum NotIn {
    /// The server said so.
    Refused(ServerError),
    /// The connection broke, or what came was nothing that a redis server says.
    Broke(io::Error),
}

/// Comes in: the protocol, who we are, which database.
pub(crate) async fn greet(stream: &mut dyn Stream, options: &Options, protocol: Protocol) -> Result<()> {
    exchange(stream, options, protocol).await.map_err(|why| trouble::not_let_in(options, why))
}

async fn exchange(mut stream: &mut dyn Stream, options: &Options, protocol: Protocol) -> Result<(), NotIn> {
    let mut out = Vec::new();
    let must_be_done = say(&mut out, options, protocol);
    stream.write_all(&out).await.map_err(NotIn::Broke)?;
    stream.flush().await.map_err(NotIn::Broke)?;
    let mut answers = Answers::new();
    for must_be_done in must_be_done {
        match answer(&mut stream, &mut answers).await.map_err(NotIn::Broke)? {
            Value::ServerError(error) if must_be_done => return Err(NotIn::Refused(error)),
            _ => {}
        }
    }
    Ok(())
}

async fn answer(stream: &mut &mut dyn Stream, answers: &mut Answers) -> io::Result<Value> {
    let strange =
        || io::Error::new(io::ErrorKind::InvalidData, "what answers there does not speak as a redis server does");
    loop {
        if let Some(value) = answers.next().map_err(|_| strange())? {
            return Ok(value);
        }
        match stream.read(answers.room()).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => answers.came(count),
        }
    }
}

/// Writes what is said; for each command, whether we are in only if it is done.
fn say(out: &mut Vec<u8>, options: &Options, protocol: Protocol) -> Vec<bool> {
    let mut must_be_done = Vec::new();
    let user = options.user.as_deref();
    let password = options.password.as_ref().map(|password| password.reveal().as_bytes());
    match (protocol, password) {
        (Protocol::New, None) => resp::command(out, "HELLO", &[b"3"]),
        (Protocol::New, Some(password)) => {
            resp::command(out, "HELLO", &[b"3", b"AUTH", user.unwrap_or("default").as_bytes(), password]);
        }
        (Protocol::Old, None) => resp::command(out, "PING", &[]),
        (Protocol::Old, Some(password)) => match user {
            Some(user) => resp::command(out, "AUTH", &[user.as_bytes(), password]),
            None => resp::command(out, "AUTH", &[password]),
        },
    }
    must_be_done.push(true);
    if options.database != 0 {
        resp::command(out, "SELECT", &[options.database.to_string().as_bytes()]);
        must_be_done.push(true);
    }
    // A server that does not know this, or does not allow it, is as good.
    for (what, said) in [("LIB-NAME", "lockkeeper"), ("LIB-VER", env!("CARGO_PKG_VERSION"))] {
        resp::command(out, "CLIENT", &[b"SETINFO", what.as_bytes(), said.as_bytes()]);
        must_be_done.push(false);
    }
    must_be_done
}
