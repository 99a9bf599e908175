//! The way to the cluster: members in turn, a badge for who we are, and connections that come back by themselves.
//!
//! What may be repeated is asked at the next member as soon as one fails, and also while one is silent: a stopped member
//! keeps its connections open and says nothing. Surprise: so a question can have been heard twice, and one that nobody waits
//! for any more can be heard late; [`Told::alone`] says whether that is possible.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use lockkeeper_core::access::Secret;
use lockkeeper_core::{Effect, Error, ErrorKind, Result};
use prost::Message;
use tokio::time::Instant;
use tonic::Status;

use crate::options::{Endpoint, Options};
use crate::pipe::{Badge, Pipe};
use crate::proto::cluster::{AuthenticateRequest, AuthenticateResponse};
use crate::proto::path;
use crate::trouble;

/// How long a member may be silent before the next one is asked as well.
const SILENCE: Duration = Duration::from_secs(1);

/// A client's way to a cluster. The runtime that first uses it drives its connections.
pub(crate) struct Link {
    options: Arc<Options>,
    members: Vec<Member>,
    /// The member that is asked first: the last one that answered.
    first: AtomicUsize,
    badge: Mutex<Option<Badge>>,
    closed: AtomicBool,
}

struct Member {
    endpoint: Endpoint,
    pipe: Mutex<Option<Pipe>>,
    /// Held while dialling, so that many who ask make one connection.
    dialling: tokio::sync::Mutex<()>,
    /// How many connections to it were given up.
    epoch: AtomicU64,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Told<A> {
    pub(crate) answer: A,
    /// Was it asked only once? If not, the same question may yet be heard by another member.
    pub(crate) alone: bool,
}

/// What one member came to: its refusal as it was said, for those who know what it means.
pub(crate) enum Failure {
    /// It said no, or nothing.
    Status(Status),
    /// It was not asked at all.
    Error(Error),
}

impl Link {
    pub(crate) fn new(options: Arc<Options>) -> Self {
        let member = |endpoint: &Endpoint| Member {
            endpoint: endpoint.clone(),
            pipe: Mutex::default(),
            dialling: tokio::sync::Mutex::default(),
            epoch: AtomicU64::new(0),
        };
        let members: Vec<_> = options.endpoints.iter().map(member).collect();
        // Clients of one address list do not all begin with the same member.
        let first = AtomicUsize::new(fastrand::usize(..members.len().max(1)));
        Self { options, members, first, badge: Mutex::default(), closed: AtomicBool::new(false) }
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// A question that may be heard twice.
    pub(crate) async fn ask<Q, A>(&self, path: &'static str, question: &Q) -> Result<Told<A>>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        self.in_turn(SILENCE, |at| async move {
            let answer = self.unary(at, path, question).await;
            answer.map_err(|failure| self.error_of(at, failure))
        })
        .await
    }

    /// The same, where a refusal of the server means something to the caller.
    pub(crate) async fn ask_for<Q, A, T>(
        &self,
        path: &'static str,
        question: &Q,
        judge: impl Fn(Result<A, Status>) -> Result<T, Status>,
    ) -> Result<Told<T>>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let judge = &judge;
        self.in_turn(SILENCE, |at| async move {
            let answer = match self.unary(at, path, question).await {
                Ok(answer) => judge(Ok(answer)).map_err(Failure::Status),
                Err(Failure::Status(status)) => judge(Err(status)).map_err(Failure::Status),
                Err(error) => Err(error),
            };
            answer.map_err(|failure| self.error_of(at, failure))
        })
        .await
    }

    /// A question that must not be heard twice: another member is asked only if the first surely did not hear it.
    pub(crate) async fn ask_once<Q, A>(&self, path: &'static str, question: &Q) -> Result<A>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        if self.is_closed() {
            return Err(closed());
        }
        let mut newest = None;
        let asking = async {
            let mut last = None;
            for at in self.order(self.first(), 1) {
                newest = Some((at, self.members[at].epoch()));
                match self.unary(at, path, question).await.map_err(|failure| self.error_of(at, failure)) {
                    Ok(answer) => {
                        self.first.store(at, Ordering::Relaxed);
                        return Ok(answer);
                    }
                    Err(error) if error.is_transient() && error.effect() == Effect::None => last = Some(error),
                    Err(error) => return Err(error),
                }
            }
            Err(last.unwrap_or_else(no_members))
        };
        match tokio::time::timeout(self.options.timeout, asking).await {
            Ok(answer) => answer,
            Err(_) => {
                self.leave(newest);
                Err(self.silent())
            }
        }
    }

    /// Tries one member after another until one answers: the next as soon as one fails, and beside one that is silent.
    ///
    /// Twice around: the way to a member may be dead without having said so, and the second time it is a new one.
    pub(crate) async fn in_turn<A, F>(&self, silence: Duration, attempt: impl Fn(usize) -> F) -> Result<Told<A>>
    where
        F: Future<Output = Result<A>>,
    {
        if self.is_closed() {
            return Err(closed());
        }
        let end = Instant::now() + self.options.timeout;
        let mut order = self.order(self.first(), 2).peekable();
        let mut trials = FuturesUnordered::new();
        let (mut newest, mut last, mut effect) = (None, None, Effect::None);
        loop {
            let mut trial = None;
            if let Some(at) = order.next() {
                newest = Some((at, self.members[at].epoch()));
                let answer = attempt(at);
                trial = Some(Box::pin(async move { (at, answer.await) }));
            } else if trials.is_empty() {
                return Err(last.unwrap_or_else(no_members).with_effect(effect));
            }
            let next_at = if order.peek().is_some() { end.min(Instant::now() + silence) } else { end };
            let heard = match &mut trial {
                // Mostly it is the only one, and needs no set of those to be waited for.
                Some(only) if trials.is_empty() => tokio::time::timeout_at(next_at, only).await.map(Some),
                _ => {
                    trials.extend(trial.take());
                    tokio::time::timeout_at(next_at, trials.next()).await
                }
            };
            match heard {
                Ok(Some((at, Ok(answer)))) => {
                    self.first.store(at, Ordering::Relaxed);
                    return Ok(Told { answer, alone: trials.is_empty() && effect == Effect::None });
                }
                Ok(Some((_, Err(error)))) if !error.is_transient() => {
                    // This member says no, and another one may yet do it.
                    let alone = trials.is_empty() && effect == Effect::None;
                    return Err(if alone { error } else { error.with_effect(Effect::Unknown) });
                }
                Ok(Some((_, Err(error)))) => {
                    if error.effect() == Effect::Unknown {
                        effect = Effect::Unknown;
                    }
                    last = Some(error);
                }
                Ok(None) => {}
                Err(_) => {
                    trials.extend(trial);
                    self.leave(newest);
                    if Instant::now() >= end {
                        return Err(self.silent());
                    }
                }
            }
        }
    }

    /// A connection was silent for too long: whoever asks that member next makes a new one.
    fn leave(&self, silent: Option<(usize, u64)>) {
        if let Some((at, epoch)) = silent {
            self.members[at].leave(epoch);
        }
    }

    /// One question to one member; once more if it only has forgotten who we are.
    async fn unary<Q, A>(&self, at: usize, path: &'static str, question: &Q) -> Result<A, Failure>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let pipe = self.pipe(at).await.map_err(Failure::Error)?;
        let badge = self.badge(at, &pipe).await?;
        let answer = match pipe.unary(path, question.clone(), badge.clone()).await {
            Err(status) if badge.is_some() && trouble::is_badge_gone(&status) => {
                self.forget(badge);
                let badge = self.badge(at, &pipe).await?;
                pipe.unary(path, question.clone(), badge).await
            }
            answer => answer,
        };
        match answer {
            Ok(answer) => Ok(answer),
            Err(status) => Err(pipe.refusal(&status).await.map_or(Failure::Status(status), Failure::Error)),
        }
    }

    /// A stream to one member.
    pub(crate) async fn stream<Q, A>(
        &self,
        at: usize,
        path: &'static str,
        questions: impl futures_util::Stream<Item = Q> + Send + 'static,
    ) -> Result<tonic::Streaming<A>>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let pipe = self.pipe(at).await?;
        let badge = self.badge(at, &pipe).await.map_err(|failure| self.error_of(at, failure))?;
        pipe.stream(path, questions, badge.clone()).await.map_err(|status| {
            if trouble::is_badge_gone(&status) {
                self.forget(badge);
            }
            trouble::refused(&self.members[at].endpoint, &status)
        })
    }

    async fn pipe(&self, at: usize) -> Result<Pipe> {
        let member = &self.members[at];
        if let Some(pipe) = member.open() {
            return Ok(pipe);
        }
        let _dialling = member.dialling.lock().await;
        if let Some(pipe) = member.open() {
            return Ok(pipe);
        }
        let pipe = match tokio::time::timeout(self.options.timeout, Pipe::dial(&self.options, &member.endpoint)).await {
            Ok(pipe) => pipe?,
            Err(_) => return Err(trouble::unreachable(&member.endpoint, std::io::ErrorKind::TimedOut.into())),
        };
        if self.is_closed() {
            return Err(closed());
        }
        *member.pipe() = Some(pipe.clone());
        Ok(pipe)
    }

    /// What shows who we are, if we have a name.
    async fn badge(&self, at: usize, pipe: &Pipe) -> Result<Option<Badge>, Failure> {
        let Some(user) = &self.options.user else { return Ok(None) };
        if let Some(badge) = self.kept().clone() {
            return Ok(Some(badge));
        }
        let password = self.options.password.as_ref().map_or("", Secret::reveal).to_owned();
        let question = AuthenticateRequest { name: user.clone(), password };
        let answer: AuthenticateResponse = match pipe.unary(path::AUTHENTICATE, question, None).await {
            Ok(answer) => answer,
            Err(status) if trouble::needs_no_badge(&status) => return Ok(None),
            // Nothing of the question itself has been sent.
            Err(status) => {
                let refusal = pipe.refusal(&status).await;
                let error = refusal.unwrap_or_else(|| {
                    trouble::not_let_in(&self.members[at].endpoint, self.options.password.as_ref(), &status)
                });
                return Err(Failure::Error(error.with_effect(Effect::None)));
            }
        };
        let badge = Badge::try_from(answer.token).map_err(|_| Failure::Error(trouble::garbled("its token")))?;
        *self.kept() = Some(badge.clone());
        Ok(Some(badge))
    }

    fn forget(&self, badge: Option<Badge>) {
        let mut kept = self.kept();
        if *kept == badge {
            *kept = None;
        }
    }

    fn kept(&self) -> MutexGuard<'_, Option<Badge>> {
        self.badge.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn error_of(&self, at: usize, failure: Failure) -> Error {
        match failure {
            Failure::Status(status) => trouble::refused(&self.members[at].endpoint, &status),
            Failure::Error(error) => error,
        }
    }

    fn silent(&self) -> Error {
        let all: Vec<String> = self.members.iter().map(|member| member.endpoint.to_string()).collect();
        trouble::silent(&all.join(", "))
    }

    /// The member that is asked first.
    pub(crate) fn first(&self) -> usize {
        self.first.load(Ordering::Relaxed)
    }

    /// The member that is asked first, and which connection to it: a stream over another one is to be left.
    pub(crate) fn way(&self) -> (usize, u64) {
        let at = self.first();
        (at, self.members[at].epoch())
    }

    /// The first one was of no use: another is asked first from now on.
    pub(crate) fn pass_over(&self, at: usize) {
        let next = (at + 1) % self.members.len().max(1);
        let _ = self.first.compare_exchange(at, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    fn order(&self, first: usize, rounds: usize) -> impl Iterator<Item = usize> + use<> {
        let count = self.members.len();
        (0..count * rounds).map(move |step| (first + step) % count)
    }

    /// How many members are known.
    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    /// Where a member is.
    pub(crate) fn endpoint(&self, at: usize) -> &Endpoint {
        &self.members[at].endpoint
    }

    /// One question to this member and no other.
    pub(crate) async fn ask_member<Q, A>(&self, at: usize, path: &'static str, question: &Q) -> Result<A>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        match tokio::time::timeout(self.options.timeout, self.unary(at, path, question)).await {
            Ok(answer) => answer.map_err(|failure| self.error_of(at, failure)),
            Err(_) => Err(trouble::silent(&self.members[at].endpoint.to_string())),
        }
    }

    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        for member in &self.members {
            member.pipe().take();
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }
}

impl Member {
    fn pipe(&self) -> MutexGuard<'_, Option<Pipe>> {
        self.pipe.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> Option<Pipe> {
        self.pipe().as_ref().filter(|pipe| !pipe.is_closed()).cloned()
    }

    fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::SeqCst)
    }

    /// A connection of that time is given up: it says nothing, and may never again.
    fn leave(&self, epoch: u64) {
        let mut pipe = self.pipe();
        if self.epoch.compare_exchange(epoch, epoch + 1, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            *pipe = None;
        }
    }
}

pub(crate) fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the store has been closed")
}

fn no_members() -> Error {
    Error::invalid("store", "it names no server")
}
