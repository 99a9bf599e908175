//! What is done to the server, to its data, its clock and the way to it: each ends as `docs/promises.md` says.
//!
//! Surprise: "lost" is not a failure here. Where the lock may pass to another (L), the test is that the old holder is
//! told, and that a fence tells the two apart.

mod clock;
mod cut;
mod flushed;
mod foreign;
mod killed;
mod replies;
mod stopped;

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use lockkeeper_core::{ErrorKind, Keeper, Name, Token};

/// A resource that lets nobody in behind a later holder. It is the test's own: cells would be gone with the server's data.
#[derive(Default)]
struct Fence(Mutex<Option<Token>>);

impl Fence {
    /// Whether this token may come in.
    fn enter(&self, token: Option<Token>) -> bool {
        let mut mark = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let enters = token.is_some() && token >= *mark;
        if enters {
            *mark = token;
        }
        enters
    }
}

/// A hold, with a moment before it was asked for and one after it was told.
struct Told {
    name: Name,
    token: Token,
    asked: Instant,
    got: Instant,
}

/// No two tokens of a name are the same, and a hold that was asked for after another was told has the greater one.
fn unique_and_rising(mut all: Vec<Told>) {
    all.sort_by(|a, b| (&a.name, a.got).cmp(&(&b.name, b.got)));
    for told in all.chunk_by(|a, b| a.name == b.name) {
        let mut tokens: Vec<Token> = told.iter().map(|told| told.token).collect();
        tokens.sort();
        assert!(tokens.is_sorted_by(|a, b| a < b), "a token of `{}` was told twice", told[0].name);
        let (mut greatest, mut earlier) = (None, 0);
        let mut by_question: Vec<&Told> = told.iter().collect();
        by_question.sort_by_key(|told| told.asked);
        for later in by_question {
            while told[earlier].got < later.asked {
                greatest = greatest.max(Some(told[earlier].token));
                earlier += 1;
            }
            assert!(Some(later.token) > greatest, "`{}`: {} after {greatest:?}", later.name, later.token);
        }
    }
}

/// Nobody can say who holds it: that is an error, and neither "yours" nor "taken".
async fn cannot_know(keeper: &Keeper, name: &str) {
    let answer = keeper.mutex(name).try_lock().await;
    let error = answer.expect_err("there is no server to ask");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
}

#[test]
fn the_check_of_tokens_can_fail() {
    let now = Instant::now();
    let told = |token, asked, got| {
        let at = |ms| now + std::time::Duration::from_millis(ms);
        Told { name: Name::new("x").unwrap(), token: Token::from_u64(token), asked: at(asked), got: at(got) }
    };
    // Asked for at the same time: either may be the later one.
    unique_and_rising(vec![told(7, 0, 5), told(6, 1, 6), told(8, 7, 8)]);
    for wrong in [vec![told(7, 0, 5), told(7, 1, 6)], vec![told(7, 0, 5), told(6, 6, 8)]] {
        assert!(std::panic::catch_unwind(|| unique_and_rising(wrong)).is_err());
    }
}
