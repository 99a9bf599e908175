//! A connection for looking around: an error reply is an answer here, and pushed news are kept.
//!
//! Surprise: a server without RESP3 is talked to all the same, in the older protocol. Locks cannot live there, but it can
//! be said why.

use std::pin::Pin;
use std::time::Duration;

use lockkeeper_core::{ErrorKind, Result};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, Pipeline, ProtocolVersion, PushInfo, PushKind, Value};
use tokio::sync::mpsc::{Receiver, channel};

use crate::link;
use crate::options::{Address, Options};
use crate::store::text_of;
use crate::{stream, trouble};

/// How many pushed messages are kept until somebody listens; more are not expected.
const NEWS: usize = 64;

/// A connection to the server that is looked at.
pub(crate) struct Visit {
    connection: MultiplexedConnection,
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
        match Self::connect(options, ProtocolVersion::RESP3).await {
            Err(error) if error.kind() == ErrorKind::Unsupported => {
                Self::connect(options, ProtocolVersion::RESP2).await
            }
            visit => visit,
        }
    }

    async fn connect(options: &Options, protocol: ProtocolVersion) -> Result<Self> {
        let (sender, news) = channel(NEWS);
        let resp3 = protocol == ProtocolVersion::RESP3;
        let connecting = async {
            let stream = stream::open(&options.address).await?;
            let mut how = AsyncConnectionConfig::new().set_response_timeout(Some(options.timeout));
            if resp3 {
                how = how.set_push_sender(move |push: PushInfo| sender.try_send(push));
            }
            let who = link::who(options, protocol);
            match MultiplexedConnection::new_with_config(&who, stream, how).await {
                Ok((connection, driver)) => {
                    let driver: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(driver);
                    tokio::spawn(driver);
                    Ok(connection)
                }
                Err(error) => Err(trouble::not_let_in(options, error)),
            }
        };
        let made = tokio::time::timeout(options.timeout, connecting).await;
        let silence = || trouble::unreachable(&options.address, link::Silence(options.timeout));
        let connection = made.unwrap_or_else(|_| Err(silence()))?;
        Ok(Self { connection, news, address: options.address.clone(), resp3 })
    }

    /// One question.
    pub(crate) async fn ask(&self, command: &Cmd) -> Result<Answer> {
        let answer = self.connection.clone().send_packed_command(command).await;
        answer.map(Answer::of).map_err(|error| trouble::unanswered(&self.address, error))
    }

    /// Many questions in one write.
    pub(crate) async fn ask_all(&self, commands: &Pipeline) -> Result<Vec<Answer>> {
        let answers = self.connection.clone().send_packed_commands(commands, 0, commands.len()).await;
        let answers = answers.map_err(|error| trouble::unanswered(&self.address, error))?;
        Ok(answers.into_iter().map(Answer::of).collect())
    }

    /// Subscribes to a channel; the server's words if it does not let us.
    pub(crate) async fn subscribe(&mut self, channel: &str) -> Result<Option<String>> {
        match self.connection.subscribe(channel).await {
            Ok(()) => Ok(None),
            Err(error) if error.code().is_some() => Ok(Some(trouble::shown(&error.to_string()))),
            Err(error) => Err(trouble::unanswered(&self.address, error)),
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
