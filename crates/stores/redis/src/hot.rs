//! Names that were found taken a moment ago: there the fast lane would only cost a round trip.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use lockkeeper_core::Name;

/// How long a name is asked for by script after it was last found taken.
const HOT_FOR: Duration = Duration::from_millis(250);
/// When there are more, those that have cooled down are forgotten.
const TIDY_AT: usize = 4_096;

/// The names that were found taken.
#[derive(Debug, Default)]
pub(crate) struct Hot(Mutex<HashMap<Name, Instant>>);

impl Hot {
    pub(crate) fn is(&self, name: &Name) -> bool {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if names.is_empty() {
            return false;
        }
        match names.get(name) {
            Some(at) if at.elapsed() < HOT_FOR => true,
            Some(_) => {
                names.remove(name);
                false
            }
            None => false,
        }
    }

    pub(crate) fn found_taken(&self, name: &Name) {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.insert(name.clone(), Instant::now());
        if names.len() > TIDY_AT {
            names.retain(|_, at| at.elapsed() < HOT_FOR);
        }
    }
}
