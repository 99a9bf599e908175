//! A bare client of etcd's protocol, for what measures this store and for what shows the server's own lock. Not for users.
//!
//! It is what the store stands on and nothing more: one connection to one member, the messages of [`crate::proto`], no other
//! member in its place and no repetition. Surprise: nothing here has a time limit. The server's own lock answers when
//! it is granted, and a timer for each question is part of no baseline; whoever asks sets the limit.

use futures_util::stream::{self, Stream};
use lockkeeper_core::{Error, Result};
use prost::Message;

use crate::options::{Endpoint, Options};
use crate::pipe::Pipe;
use crate::proto::lease::{LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse};
use crate::proto::path;
use crate::trouble;

/// A connection to one member. Clones share it.
#[derive(Clone)]
pub struct Client {
    pipe: Pipe,
    endpoint: Endpoint,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl Client {
    /// Connects to the first member that can be reached. Users and passwords are not shown to it.
    ///
    /// # Errors
    /// `Unavailable` if there is none.
    pub async fn open(options: Options) -> Result<Self> {
        let mut last = Error::invalid("store", "it names no server");
        for endpoint in &options.endpoints {
            match Pipe::dial(&options, endpoint).await {
                Ok(pipe) => return Ok(Self { pipe, endpoint: endpoint.clone() }),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// One question, one answer.
    ///
    /// # Errors
    /// What the server said instead.
    pub async fn ask<Q, A>(&self, path: &'static str, question: &Q) -> Result<A>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let answer = self.pipe.unary(path, question.clone(), None).await;
        answer.map_err(|status| trouble::refused(&self.endpoint, &status))
    }

    /// Questions and answers as they come.
    ///
    /// # Errors
    /// What the server said instead of opening the stream.
    pub async fn stream<Q, A>(
        &self,
        path: &'static str,
        questions: impl Stream<Item = Q> + Send + 'static,
    ) -> Result<Answers<A>>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        match self.pipe.stream(path, questions, None).await {
            Ok(answers) => Ok(Answers { answers, endpoint: self.endpoint.clone() }),
            Err(status) => Err(trouble::refused(&self.endpoint, &status)),
        }
    }

    /// Makes a lease of so many seconds and gives its id.
    ///
    /// # Errors
    /// What the server said instead.
    pub async fn grant(&self, seconds: i64) -> Result<i64> {
        let answer: LeaseGrantResponse =
            self.ask(path::LEASE_GRANT, &LeaseGrantRequest { ttl: seconds, id: 0 }).await?;
        Ok(answer.id)
    }

    /// Keeps leases alive.
    ///
    /// # Errors
    /// What the server said instead; `Foreign` if it knows no such lease.
    pub async fn keep_alive(&self, leases: &[i64]) -> Result<()> {
        let questions: Vec<_> = leases.iter().map(|id| LeaseKeepAliveRequest { id: *id }).collect();
        let mut answers = self.stream(path::LEASE_KEEP_ALIVE, stream::iter(questions)).await?;
        for _ in leases {
            let answer: Option<LeaseKeepAliveResponse> = answers.next().await?;
            if answer.is_none_or(|answer| answer.ttl <= 0) {
                return Err(trouble::garbled("a lease that is not there was to be kept alive"));
            }
        }
        Ok(())
    }
}

/// What a stream answers.
pub struct Answers<A> {
    answers: tonic::Streaming<A>,
    endpoint: Endpoint,
}

impl<A> std::fmt::Debug for Answers<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answers").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl<A> Answers<A> {
    /// The next one; `None` at the end.
    ///
    /// # Errors
    /// What the server said instead.
    pub async fn next(&mut self) -> Result<Option<A>> {
        self.answers.message().await.map_err(|status| trouble::refused(&self.endpoint, &status))
    }
}
