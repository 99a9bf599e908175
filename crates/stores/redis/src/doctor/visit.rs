//! A connection for looking around: an error reply is an answer here, and pushed news are kept.
//!
//! Surprise: a server without RESP3 is talked to all the same, in the older protocol. Locks cannot live there, but it can
//! be said why.

use std::time::Duration;

use lockkeeper_core::{ErrorKind, Result};
use redis::{Cmd, Pipeline, PushInfo, PushKind, Value};
use tokio::sync::mpsc::{Receiver, channel};

use crate::greet::{self, Protocol};
use crate::options::{Address, Options};
use crate::pipe::{Broken, Ear, Pipe};
use crate::store::text_of;
use crate::{stream, trouble};

/// How many pushed messages are kept until somebody listens; more are not expected.
const NEWS: usize = 64;

/// A connection to the server that is looked at.
pub(crate) struct Visit {
    pipe: Pipe,
    news: Receiver<PushInfo>,
    address: Address,
    /// Does it speak the protocol that wake-ups need?
    pub(crate) resp3: bool,
}

/// What the server said to a question.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Answer {
    Value(Value),
    /// It refused: the code, and the rest of the words.
    Refused(String, String),
}

impl Answer {
    fn of(value: Value) -> Self {
        match value {
            Value::ServerError(error) => {
                Self::Refused(trouble::shown(error.code()), trouble::shown(error.details().unwrap_or_default()))
            }
            value => Self::Value(value),
        }
    }

    /// The value, if it was not refused.
    pub(crate) fn value(self) -> Option<Value> {
        match self {
            Self::Value(value) => Some(value),
            Self::Refused(..) => None,
        }
    }

    /// The value as text, if it was not refused.
    pub(crate) fn text(self) -> Option<String> {
        self.value().map(|value| text_of(&value))
    }
}

impl Visit {
    pub(crate) async fn begin(options: &Options) -> Result<Self> {
        match Self::connect(options, Protocol::New).await {
            Err(error) if error.kind() == ErrorKind::Unsupported => Self::connect(options, Protocol::Old).await,
            visit => visit,
        }
    }

    async fn connect(options: &Options, protocol: Protocol) -> Result<Self> {
        let (sender, news) = channel(NEWS);
        let connecting = async {
            let mut stream = stream::open(&options.address).await?;
            greet::greet(&mut *stream, options, protocol).await?;
            let ear: Ear = Box::new(move |push| drop(sender.try_send(push)));
            let (pipe, driver) = Pipe::new(stream, Some(ear), Some(options.timeout));
            tokio::spawn(driver);
            Ok(pipe)
        };
        let made = tokio::time::timeout(options.timeout, connecting).await;
        let silence = || trouble::unreachable(&options.address, Broken::Silent(options.timeout));
        let pipe = made.unwrap_or_else(|_| Err(silence()))?;
        Ok(Self { pipe, news, address: options.address.clone(), resp3: protocol == Protocol::New })
    }

    /// One question.
    pub(crate) async fn ask(&self, command: &Cmd) -> Result<Answer> {
        let answer = self.pipe.ask(|out| command.write_packed_command(out)).await;
        answer.map(Answer::of).map_err(|why| trouble::unanswered(&self.address, why))
    }

    /// Many questions in one write.
    pub(crate) async fn ask_all(&self, commands: &Pipeline) -> Result<Vec<Answer>> {
        let answers = self.pipe.ask_commands(commands).await;
        let answers = answers.map_err(|why| trouble::unanswered(&self.address, why))?;
        Ok(answers.into_iter().map(Answer::of).collect())
    }

    /// Subscribes to a channel; the server's words if it does not let us.
    pub(crate) async fn subscribe(&mut self, channel: &str) -> Result<Option<String>> {
        match self.pipe.subscribe(channel).await {
            Ok(Value::ServerError(error)) => Ok(Some(trouble::shown(&error.to_string()))),
            Ok(_) => Ok(None),
            Err(why) => Err(trouble::unanswered(&self.address, why)),
        }
    }

    /// Was this message pushed to us, at most so long from now?
    pub(crate) async fn hears(&mut self, message: &[u8], within: Duration) -> bool {
        let heard = async {
            while let Some(push) = self.news.recv().await {
                let said = push.data.get(1);
                if push.kind == PushKind::Message && matches!(said, Some(Value::BulkString(said)) if said == message) {
                    return true;
                }
            }
            false
        };
        tokio::time::timeout(within, heard).await.unwrap_or(false)
    }
}
