//! etcd's own questions, past the store: for comparisons with what the server offers itself, and for nothing else.
//!
//! Surprise: nothing here is part of the API. It has no opinion on what an answer is worth, which is what the rest of this
//! crate is about.

use std::sync::Arc;
use std::time::Duration;

use lockkeeper_core::{Error, Result};
use prost::Message;

use crate::link::Link;
use crate::options::Options;
use crate::session;

/// A client that asks what it is told to.
pub struct Client(Link);

impl Client {
    /// A client of this cluster, which is not asked yet.
    ///
    /// # Errors
    /// `Invalid` if no member is named.
    pub fn open(options: Options) -> Result<Self> {
        if options.endpoints.is_empty() {
            return Err(Error::invalid("store", "it names no server"));
        }
        Ok(Self(Link::new(Arc::new(options))))
    }

    /// Puts a question by its path, once.
    ///
    /// # Errors
    /// What the server said instead of an answer, or that it said nothing for as long as the options allow.
    pub async fn ask<Q, A>(&self, path: &'static str, question: &Q) -> Result<A>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        self.0.ask_once(path, question).await
    }

    /// Keeps a lease alive, and says for how long; zero if there is none.
    ///
    /// # Errors
    /// The same.
    pub async fn keep_alive(&self, lease: i64) -> Result<Duration> {
        let kept = session::keep_alive(&self.0, &[lease], self.0.options().timeout).await?;
        Ok(kept.first().map_or(Duration::ZERO, |kept| kept.length()))
    }

    /// Ends its connections.
    pub fn close(&self) {
        self.0.close();
    }
}
