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
mod timeout;
mod trace;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

pub use check::Check;
pub use fault::{Fault, Faults};
pub use metrics::Metrics;
pub use prefix::Prefix;
pub use retry::Retry;
pub use timeout::Timeout;
pub use trace::Trace;

use crate::cell::{CellOp, CellReply, Versioned};
use crate::claim::{Claim, ClaimId};
use crate::error::{Error, Result};
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
    /// The method's name, stable for logs and metrics.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Enter { .. } => "enter",
            Self::Wait { .. } => "wait",
            Self::Renew { .. } => "renew",
            Self::Leave { .. } => "leave",
            Self::Inspect { .. } => "inspect",
            Self::Read { .. } => "read",
            Self::Update { .. } => "update",
            Self::Close => "close",
        }
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
pub struct Next<'a>(&'a dyn Store);

impl<'a> Next<'a> {
    /// Passes a call on.
    pub fn run<'b>(self, call: Call<'b>) -> Reply<'b, Answer>
    where
        'a: 'b,
    {
        let store = self.0;
        Box::pin(async move {
            Ok(match call {
                Call::Enter { lock, claim } => Answer::Standing(store.enter(lock, claim).await?),
                Call::Wait { lock, waiter, at_most } => Answer::News(store.wait(lock, waiter, at_most).await?),
                Call::Renew { held } => Answer::Renewals(store.renew(held).await?),
                Call::Leave { lock, id, keep } => Answer::Left(store.leave(lock, id, keep).await?),
                Call::Inspect { page } => Answer::Lines(store.inspect(page).await?),
                Call::Read { cell } => Answer::Value(store.read(cell).await?),
                Call::Update { cell, op } => Answer::Cell(store.update(cell, op).await?),
                Call::Close => {
                    store.close().await?;
                    Answer::Closed
                }
            })
        })
    }

    /// What the store promises.
    pub fn profile(self) -> &'a Profile {
        self.0.profile()
    }
}

/// Puts a layer around a store; the result is a store.
pub fn wrap(store: SharedStore, layer: impl Layer) -> SharedStore {
    Arc::new(Layered { layer: Box::new(layer), next: store })
}

/// Puts a layer that is already boxed around a store.
pub(crate) fn wrap_boxed(store: SharedStore, layer: Box<dyn Layer>) -> SharedStore {
    Arc::new(Layered { layer, next: store })
}

#[derive(Debug)]
struct Layered {
    layer: Box<dyn Layer>,
    next: SharedStore,
}

/// Calls the layer and takes the one variant that belongs to the method.
macro_rules! through {
    ($self:ident, $call:expr, $variant:ident) => {
        Box::pin(async move {
            match $self.layer.around($call, Next(&*$self.next)).await? {
                Answer::$variant(answer) => Ok(answer),
                other => Err(misplaced(&$self.layer, &other)),
            }
        })
    };
}

fn misplaced(layer: &dyn Debug, answer: &Answer) -> Error {
    Error::bug(format!("the layer {layer:?} gave an answer that belongs to another call: {answer:?}"))
}

impl Store for Layered {
    fn profile(&self) -> &Profile {
        self.next.profile()
    }

    fn enter<'a>(&'a self, lock: &'a Name, claim: &'a Claim) -> Reply<'a, Standing> {
        through!(self, Call::Enter { lock, claim }, Standing)
    }

    fn wait<'a>(&'a self, lock: &'a Name, waiter: Waiter<'a>, at_most: Duration) -> Reply<'a, Option<Standing>> {
        through!(self, Call::Wait { lock, waiter, at_most }, News)
    }

    fn renew<'a>(&'a self, held: &'a [Held]) -> Reply<'a, Vec<Renewal>> {
        through!(self, Call::Renew { held }, Renewals)
    }

    fn leave<'a>(&'a self, lock: &'a Name, id: ClaimId, keep: Keep) -> Reply<'a, Left> {
        through!(self, Call::Leave { lock, id, keep }, Left)
    }

    fn inspect<'a>(&'a self, page: Page<'a>) -> Reply<'a, Vec<LockView>> {
        through!(self, Call::Inspect { page }, Lines)
    }

    fn read<'a>(&'a self, cell: &'a Name) -> Reply<'a, Option<Versioned>> {
        through!(self, Call::Read { cell }, Value)
    }

    fn update<'a>(&'a self, cell: &'a Name, op: &'a CellOp) -> Reply<'a, CellReply> {
        through!(self, Call::Update { cell, op }, Cell)
    }

    fn close<'a>(&'a self) -> Reply<'a, ()> {
        Box::pin(async move {
            match self.layer.around(Call::Close, Next(&*self.next)).await? {
                Answer::Closed => Ok(()),
                other => Err(misplaced(&self.layer, &other)),
            }
        })
    }
}

/// The outcome of a call as a word, stable for logs and metrics.
fn outcome(result: &Result<Answer>) -> &'static str {
    match result {
        Ok(Answer::Standing(Standing::Held { .. })) => "held",
        Ok(Answer::Standing(Standing::Waiting { .. })) => "waiting",
        Ok(Answer::Standing(Standing::Refused { .. })) => "refused",
        Ok(_) => "ok",
        Err(error) => error.kind().as_str(),
    }
}
