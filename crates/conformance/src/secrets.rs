//! Are passwords kept quiet? A collector of all that is traced, and errors in all the ways they can be shown.
//!
//! Surprise: the collector is for the whole test program, since the watchdog has a thread of its own. It keeps only what holds
//! the word that all passwords of these tests have in common.

use std::error::Error as StdError;
use std::fmt::{Debug, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// What all passwords of these tests have in common.
pub const WORD: &str = "swordfish";

/// Everything that is traced, at any level.
#[derive(Default)]
pub struct Collector {
    seen: AtomicU64,
    spans: AtomicU64,
    told: Mutex<Vec<String>>,
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}

impl Collector {
    /// The one of this program, at work from the first call on.
    ///
    /// # Panics
    /// When somebody else listens already.
    pub fn start() -> &'static Collector {
        static ONLY: OnceLock<&'static Collector> = OnceLock::new();
        ONLY.get_or_init(|| {
            let collector: &'static Collector = Box::leak(Box::default());
            tracing::subscriber::set_global_default(Shared(collector)).expect("nobody else listens");
            collector
        })
    }

    /// How much was traced so far.
    pub fn seen(&self) -> u64 {
        self.seen.load(Ordering::SeqCst)
    }

    /// What holds the word, since this was last asked.
    pub fn told(&self) -> Vec<String> {
        std::mem::take(&mut *self.words())
    }

    fn words(&self) -> MutexGuard<'_, Vec<String>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, metadata: &Metadata<'_>, record: impl FnOnce(&mut Text)) {
        let mut text = Text(format!("{} {} {}", metadata.level(), metadata.target(), metadata.name()));
        record(&mut text);
        self.seen.fetch_add(1, Ordering::SeqCst);
        if text.0.contains(WORD) {
            self.words().push(text.0);
        }
    }
}

struct Shared(&'static Collector);

impl Subscriber for Shared {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.0.take(span.metadata(), |text| span.record(text));
        Id::from_u64(self.0.spans.fetch_add(1, Ordering::SeqCst) + 1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        let mut text = Text(String::new());
        values.record(&mut text);
        if text.0.contains(WORD) {
            self.0.words().push(text.0);
        }
    }

    fn event(&self, event: &Event<'_>) {
        self.0.take(event.metadata(), |text| event.record(text));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// An error in all the ways it can be shown.
pub fn shown(error: &dyn StdError) -> String {
    let mut text = format!("{error} {error:?} {error:#?}");
    let mut cause = error.source();
    while let Some(error) = cause {
        let _ = write!(text, " {error} {error:?}");
        cause = error.source();
    }
    text
}

/// Fails if the word is in a text.
///
/// # Panics
/// Then.
pub fn keeps_quiet(what: &str, text: &str) {
    assert!(!text.contains(WORD), "{what}: {text}");
}
