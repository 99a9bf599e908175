//! Layers: what is wrapped around every call to a store, whatever the store.
//!
//! Forwarding the methods is written once, here; a layer writes one method, [`Layer::around`]. The
//! [builder](crate::Builder) fixes the order — own, trace, metrics, retry, timeout, fault, check, store — because a
//! free order is a trap: a retry inside a timeout, say, would never retry.

mod check;
mod fault;
mod metrics;
mod prefix;
mod retry;
mod standard;
mod timeout;
mod trace;

use std::any::Any;
use std::fmt::Debug;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

pub use check::Check;
pub use fault::{Fault, Faults};
pub use metrics::Metrics;
pub use prefix::Prefix;
pub use retry::Retry;
pub(crate) use standard::Standard;
pub use timeout::Timeout;
pub use trace::Trace;

use crate::cell::{CellOp, CellReply, Versioned};
use crate::claim::{Claim, ClaimId};
use crate::error::{Error, ErrorKind, Result};
use crate::name::Name;
use crate::store::{Held, Keep, Left, LockView, Page, Profile, Renewal, Reply, SharedStore, Standing, Store, Waiter};

/// Something around every call.
///
/// ```
/// use lockkeeper_core::layers::{Answer, Call, Layer, Next};
/// use lockkeeper_core::store::Reply;
///
/// /// Says what is called.
/// #[derive(Debug)]
/// struct Say;
///
/// impl Layer for Say {
///     fn around<'a>(&'a self, call: Call<'a>, next: Next<'a>) -> Reply<'a, Answer> {
///         Box::pin(async move {
///             eprintln!("{}", call.word());
///             next.run(call).await
///         })
///     }
/// }
/// ```
pub trait Layer: Debug + Send + Sync + 'static {
    /// Handles a call: by passing it on once, several times or not at all.
    fn around<'a>(&'a self, call: Call<'a>, next: Next<'a>) -> Reply<'a, Answer>;
}

/// A call to a store, as a value.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Call<'a> {
    /// [`Store::enter`].
    Enter {
        /// The lock.
        lock: &'a Name,
        /// The claim.
        claim: &'a Claim,
    },
    /// [`Store::wait`].
    Wait {
        /// The lock.
        lock: &'a Name,
        /// Who waits.
        waiter: Waiter<'a>,
        /// How long at the most.
        at_most: Duration,
    },
    /// [`Store::renew`].
    Renew {
        /// The holds.
        held: &'a [Held],
    },
    /// [`Store::leave`].
    Leave {
        /// The lock.
        lock: &'a Name,
        /// The claim.
        id: ClaimId,
        /// How long the name stays taken.
        keep: Keep,
    },
    /// [`Store::inspect`].
    Inspect {
        /// Which lines.
        page: Page<'a>,
    },
    /// [`Store::read`].
    Read {
        /// The cell.
        cell: &'a Name,
    },
    /// [`Store::update`].
    Update {
        /// The cell.
        cell: &'a Name,
        /// What to do.
        op: &'a CellOp,
    },
    /// [`Store::close`].
    Close,
}

impl Call<'_> {
    /// The methods' names, by their places.
    const WORDS: [&'static str; 8] = ["enter", "wait", "renew", "leave", "inspect", "read", "update", "close"];

    fn place(&self) -> usize {
        match self {
            Self::Enter { .. } => 0,
            Self::Wait { .. } => 1,
            Self::Renew { .. } => 2,
            Self::Leave { .. } => 3,
            Self::Inspect { .. } => 4,
            Self::Read { .. } => 5,
            Self::Update { .. } => 6,
            Self::Close => 7,
        }
    }

    /// The method's name, stable for logs and metrics.
    pub fn word(&self) -> &'static str {
        Self::WORDS[self.place()]
    }

    /// The lock or cell the call is about, if it is about one.
    pub fn name(&self) -> Option<&Name> {
        match self {
            Self::Enter { lock, .. } | Self::Wait { lock, .. } | Self::Leave { lock, .. } => Some(lock),
            Self::Read { cell } | Self::Update { cell, .. } => Some(cell),
            Self::Inspect { page } => page.only,
            Self::Renew { .. } | Self::Close => None,
        }
    }
}

/// The answer to a [`Call`].
#[derive(Debug)]
#[non_exhaustive]
pub enum Answer {
    /// To `enter`.
    Standing(Standing),
    /// To `wait`.
    News(Option<Standing>),
    /// To `renew`.
    Renewals(Vec<Renewal>),
    /// To `leave`.
    Left(Left),
    /// To `inspect`.
    Lines(Vec<LockView>),
    /// To `read`.
    Value(Option<Versioned>),
    /// To `update`.
    Cell(CellReply),
    /// To `close`.
    Closed,
}

/// What is inside of a layer: the next one, or the store.
#[derive(Debug, Clone, Copy)]
pub struct Next<'a> {
    layers: &'a [Arc<dyn Layer>],
    store: &'a dyn Store,
}

impl<'a> Next<'a> {
    /// Passes a call on.
    pub fn run<'b>(self, call: Call<'b>) -> Passing<'b>
    where
        'a: 'b,
    {
        let Self { layers, store } = self;
        if let Some((layer, layers)) = layers.split_first() {
            return Passing(Way::Layer(layer.around(call, Next { layers, store })));
        }
        Passing(match call {
            Call::Enter { lock, claim } => Way::Enter(store.enter(lock, claim)),
            Call::Wait { lock, waiter, at_most } => Way::Wait(store.wait(lock, waiter, at_most)),
            Call::Renew { held } => Way::Renew(store.renew(held)),
            Call::Leave { lock, id, keep } => Way::Leave(store.leave(lock, id, keep)),
            Call::Inspect { page } => Way::Inspect(store.inspect(page)),
            Call::Read { cell } => Way::Read(store.read(cell)),
            Call::Update { cell, op } => Way::Update(store.update(cell, op)),
            Call::Close => Way::Close(store.close()),
        })
    }

    /// What the store promises.
    pub fn profile(self) -> &'a Profile {
        self.store.profile()
    }
}

/// A call that was passed on: await it for its answer.
#[must_use = "a call that is not awaited is not made"]
pub struct Passing<'a>(Way<'a>);

/// By which method. An enum of its own, and no future around a future, because every call of every lock goes this way.
enum Way<'a> {
    Layer(Reply<'a, Answer>),
    Enter(Reply<'a, Standing>),
    Wait(Reply<'a, Option<Standing>>),
    Renew(Reply<'a, Vec<Renewal>>),
    Leave(Reply<'a, Left>),
    Inspect(Reply<'a, Vec<LockView>>),
    Read(Reply<'a, Option<Versioned>>),
    Update(Reply<'a, CellReply>),
    Close(Reply<'a, ()>),
}

impl<'a> Passing<'a> {
    /// As a layer returns it that has nothing to add.
    pub fn reply(self) -> Reply<'a, Answer> {
        match self.0 {
            Way::Layer(reply) => reply,
            way => Box::pin(Self(way)),
        }
    }
}

impl Future for Passing<'_> {
    type Output = Result<Answer>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Way::Layer(reply) => reply.as_mut().poll(context),
            Way::Enter(reply) => reply.as_mut().poll(context).map_ok(Answer::Standing),
            Way::Wait(reply) => reply.as_mut().poll(context).map_ok(Answer::News),
            Way::Renew(reply) => reply.as_mut().poll(context).map_ok(Answer::Renewals),
            Way::Leave(reply) => reply.as_mut().poll(context).map_ok(Answer::Left),
            Way::Inspect(reply) => reply.as_mut().poll(context).map_ok(Answer::Lines),
            Way::Read(reply) => reply.as_mut().poll(context).map_ok(Answer::Value),
            Way::Update(reply) => reply.as_mut().poll(context).map_ok(Answer::Cell),
            Way::Close(reply) => reply.as_mut().poll(context).map_ok(|()| Answer::Closed),
        }
    }
}

/// Puts a layer around a store; the result is a store.
pub fn wrap(store: SharedStore, layer: impl Layer) -> SharedStore {
    wrap_all(store, vec![Arc::new(layer)])
}

/// Puts layers around a store, the first outermost. Those around a store that has some already join them: to go through
/// two stacks costs each call an allocation more.
pub(crate) fn wrap_all(store: SharedStore, mut layers: Vec<Arc<dyn Layer>>) -> SharedStore {
    let store = match (&*store as &dyn Any).downcast_ref::<Layered>() {
        Some(inner) => {
            layers.extend(inner.layers.iter().cloned());
            inner.store.clone()
        }
        None => store,
    };
    Arc::new(Layered { layers, store })
}

#[derive(Debug)]
struct Layered {
    layers: Vec<Arc<dyn Layer>>,
    store: SharedStore,
}

impl Layered {
    fn pass<'a>(&'a self, call: Call<'a>) -> Passing<'a> {
        Next { layers: &self.layers, store: &*self.store }.run(call)
    }
}

/// Calls the layers and takes the one variant that belongs to the method.
macro_rules! through {
    ($self:ident, $call:expr, $variant:pat => $answer:expr) => {{
        let passing = $self.pass($call);
        Box::pin(async move {
            match passing.await? {
                $variant => Ok($answer),
                other => Err(misplaced(&$self.layers, &other)),
            }
        })
    }};
}

fn misplaced(layers: &dyn Debug, answer: &Answer) -> Error {
    Error::bug(format!("one of the layers {layers:?} gave an answer that belongs to another call: {answer:?}"))
}

impl Store for Layered {
    fn profile(&self) -> &Profile {
        self.store.profile()
    }

    fn enter<'a>(&'a self, lock: &'a Name, claim: &'a Claim) -> Reply<'a, Standing> {
        through!(self, Call::Enter { lock, claim }, Answer::Standing(answer) => answer)
    }

    fn wait<'a>(&'a self, lock: &'a Name, waiter: Waiter<'a>, at_most: Duration) -> Reply<'a, Option<Standing>> {
        through!(self, Call::Wait { lock, waiter, at_most }, Answer::News(answer) => answer)
    }

    fn renew<'a>(&'a self, held: &'a [Held]) -> Reply<'a, Vec<Renewal>> {
        through!(self, Call::Renew { held }, Answer::Renewals(answer) => answer)
    }

    fn leave<'a>(&'a self, lock: &'a Name, id: ClaimId, keep: Keep) -> Reply<'a, Left> {
        through!(self, Call::Leave { lock, id, keep }, Answer::Left(answer) => answer)
    }

    fn inspect<'a>(&'a self, page: Page<'a>) -> Reply<'a, Vec<LockView>> {
        through!(self, Call::Inspect { page }, Answer::Lines(answer) => answer)
    }

    fn read<'a>(&'a self, cell: &'a Name) -> Reply<'a, Option<Versioned>> {
        through!(self, Call::Read { cell }, Answer::Value(answer) => answer)
    }

    fn update<'a>(&'a self, cell: &'a Name, op: &'a CellOp) -> Reply<'a, CellReply> {
        through!(self, Call::Update { cell, op }, Answer::Cell(answer) => answer)
    }

    fn close<'a>(&'a self) -> Reply<'a, ()> {
        through!(self, Call::Close, Answer::Closed => ())
    }
}

/// How a call ended, in logs and metrics.
enum Outcome {
    Held,
    Waiting,
    Refused,
    Ok,
    Err(ErrorKind),
}

impl Outcome {
    const COUNT: usize = 4 + ErrorKind::ALL.len();

    fn of(result: &Result<Answer>) -> Self {
        match result {
            Ok(Answer::Standing(Standing::Held { .. })) => Self::Held,
            Ok(Answer::Standing(Standing::Waiting { .. })) => Self::Waiting,
            Ok(Answer::Standing(Standing::Refused { .. })) => Self::Refused,
            Ok(_) => Self::Ok,
            Err(error) => Self::Err(error.kind()),
        }
    }

    fn place(&self) -> usize {
        match self {
            Self::Held => 0,
            Self::Waiting => 1,
            Self::Refused => 2,
            Self::Ok => 3,
            Self::Err(kind) => 4 + *kind as usize,
        }
    }

    /// The outcome as a word, stable.
    fn word(&self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Waiting => "waiting",
            Self::Refused => "refused",
            Self::Ok => "ok",
            Self::Err(kind) => kind.as_str(),
        }
    }

    /// All words, by their places.
    fn words() -> [&'static str; Self::COUNT] {
        let mut words = [""; Self::COUNT];
        let errors = ErrorKind::ALL.into_iter().map(Self::Err);
        for outcome in [Self::Held, Self::Waiting, Self::Refused, Self::Ok].into_iter().chain(errors) {
            words[outcome.place()] = outcome.word();
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_has_a_word_of_its_own() {
        let words = std::collections::BTreeSet::from(Outcome::words());
        assert_eq!(words.len(), Outcome::COUNT);
        assert!(!words.contains(""), "a kind of error is missing in `ErrorKind::ALL`");
    }
}
