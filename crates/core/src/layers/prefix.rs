//! Puts every name under a prefix, so that several uses of one store do not meet.
//!
//! An empty prefix is for sharing names with other clients; it adds no layer at all.

use super::{Answer, Call, Layer, Next};
use crate::error::{Error, Result};
use crate::name::{Name, check_prefix};
use crate::store::{Held, LockView, Page, Reply};

/// Names go in as `prefix/name` and come out without it; what stands elsewhere is not shown.
#[derive(Debug)]
pub struct Prefix(String);

impl Prefix {
    /// A prefix, checked like a name; `None` if it is empty.
    pub fn new(prefix: &str) -> Result<Option<Self>> {
        check_prefix(prefix)?;
        Ok((!prefix.is_empty()).then(|| Self(prefix.to_owned())))
    }

    async fn inspect(&self, page: Page<'_>, next: Next<'_>) -> Result<Answer> {
        let only = page.only.map(|name| name.under(&self.0));
        // Names are in byte order, so ours stand together right behind the bare prefix and its `/`.
        let after = page.after.map_or_else(|| Name::before_all_under(&self.0), |name| name.under(&self.0));
        let page = Page { only: only.as_ref(), after: Some(&after).filter(|_| only.is_none()), ..page };
        let Answer::Lines(lines) = next.run(Call::Inspect { page }).await? else {
            return Err(Error::bug("`inspect` was answered with something else"));
        };
        let ours = |mut line: LockView| {
            line.name = line.name.without(&self.0)?;
            Some(line)
        };
        Ok(Answer::Lines(lines.into_iter().filter_map(ours).collect()))
    }
}

impl Layer for Prefix {
    fn around<'a>(&'a self, call: Call<'a>, next: Next<'a>) -> Reply<'a, Answer> {
        Box::pin(async move {
            match call {
                Call::Enter { lock, claim } => next.run(Call::Enter { lock: &lock.under(&self.0), claim }).await,
                Call::Wait { lock, waiter, at_most } => {
                    next.run(Call::Wait { lock: &lock.under(&self.0), waiter, at_most }).await
                }
                Call::Renew { held } => {
                    let under = |one: &Held| Held { lock: one.lock.under(&self.0), ..one.clone() };
                    let held: Vec<Held> = held.iter().map(under).collect();
                    next.run(Call::Renew { held: &held }).await
                }
                Call::Leave { lock, id, keep } => next.run(Call::Leave { lock: &lock.under(&self.0), id, keep }).await,
                Call::Inspect { page } => Box::pin(self.inspect(page, next)).await,
                Call::Read { cell } => next.run(Call::Read { cell: &cell.under(&self.0) }).await,
                Call::Update { cell, op } => next.run(Call::Update { cell: &cell.under(&self.0), op }).await,
                Call::Close => next.run(call).await,
            }
        })
    }
}
