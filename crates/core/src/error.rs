//! The one error type. It answers three questions: what happened, may it have taken effect, what now.
//!
//! Surprise: not getting a lock is not an error (`try_lock` answers `None`), and "the store did not answer" is
//! never turned into "no": look at [`Error::effect`].

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

/// A result of this library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The lock was not free within the wait that was asked for.
    Timeout,
    /// The hold is gone: it ran out, was broken, or its store says it is not ours.
    Lost,
    /// The store could not be reached, or did not answer in time.
    Unavailable,
    /// Fewer replicas than asked for have the write.
    NotReplicated,
    /// The name is in use as another kind, or with another capacity.
    Mismatch,
    /// This store cannot promise what was asked for.
    Unsupported,
    /// The store refused the credentials or the permission.
    Denied,
    /// The input is outside the limits; nothing was sent.
    Invalid,
    /// The store holds something at that name that is not ours; it was not touched.
    Foreign,
    /// The keeper has been closed.
    Closed,
    /// A promise of this library was broken; please report it.
    Bug,
}

impl ErrorKind {
    /// All of them, by their places; `Bug` is the last.
    pub(crate) const ALL: [Self; Self::Bug as usize + 1] = [
        Self::Timeout,
        Self::Lost,
        Self::Unavailable,
        Self::NotReplicated,
        Self::Mismatch,
        Self::Unsupported,
        Self::Denied,
        Self::Invalid,
        Self::Foreign,
        Self::Closed,
        Self::Bug,
    ];

    /// The kind as a lower-case word, stable for logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Lost => "lost",
            Self::Unavailable => "unavailable",
            Self::NotReplicated => "not_replicated",
            Self::Mismatch => "mismatch",
            Self::Unsupported => "unsupported",
            Self::Denied => "denied",
            Self::Invalid => "invalid",
            Self::Foreign => "foreign",
            Self::Closed => "closed",
            Self::Bug => "bug",
        }
    }
}

/// May the failed call have taken effect at the store?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// It changed nothing.
    None,
    /// It may have changed something; asking again with the same claim id tells.
    Unknown,
}

/// What went wrong, whether it may have taken effect, and what to do now.
#[derive(Clone)]
pub struct Error(Box<Parts>);

#[derive(Clone)]
struct Parts {
    kind: ErrorKind,
    effect: Effect,
    message: Cow<'static, str>,
    hint: Option<Cow<'static, str>>,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error that changed nothing; add to it with the `with_…` methods.
    pub fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Parts { kind, effect: Effect::None, message: message.into(), hint: None, source: None }))
    }

    /// Input outside the limits.
    pub fn invalid(field: &str, reason: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Invalid, format!("invalid {field}: {reason}"))
    }

    /// The store did not answer, so the call may have taken effect.
    pub fn unanswered(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Unavailable, message).with_effect(Effect::Unknown)
    }

    /// A broken promise of this library.
    pub fn bug(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Bug, message).with_hint("this is a fault of lockkeeper: please report it")
    }

    /// The same error with another effect.
    #[must_use]
    pub fn with_effect(mut self, effect: Effect) -> Self {
        self.0.effect = effect;
        self
    }

    /// The same error with a word on what to do now.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// The same error with its cause.
    #[must_use]
    pub fn with_source(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.0.source = Some(Arc::new(source));
        self
    }

    /// What happened.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// May it have taken effect?
    pub fn effect(&self) -> Effect {
        self.0.effect
    }

    /// What to do now, where there is something to say.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// Would the same call, made again, have a chance?
    pub fn is_transient(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Unavailable | ErrorKind::NotReplicated)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Error");
        out.field("kind", &self.0.kind).field("effect", &self.0.effect).field("message", &self.0.message);
        if let Some(hint) = &self.0.hint {
            out.field("hint", hint);
        }
        if let Some(source) = &self.0.source {
            out.field("source", &source.to_string());
        }
        out.finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}
