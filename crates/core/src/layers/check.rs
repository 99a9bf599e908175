//! Holds every answer against what the store promises. Always on in tests; cheap enough to leave on.
//!
//! Surprise: it also remembers tokens. A hold that was asked for after another one had been told its token must
//! get a greater one, whatever claims, retries and expiries lie between.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::{Answer, Call, Layer, Next};
use crate::cell::{CellAction, CellReply};
use crate::claim::{Claim, ClaimId, Patience, Token};
use crate::error::{Error, Result};
use crate::name::Name;
use crate::store::{Profile, Renewal, Reply, Standing, Tokens};

/// How many locks are remembered; beyond it the memory starts anew.
const REMEMBERED: usize = 4_096;

/// Answers `Bug` where a store breaks a promise.
#[derive(Debug, Default)]
pub struct Check {
    told: Mutex<HashMap<Name, Told>>,
}

/// The greatest token told to a holder of an exclusive lock, and to which claim.
#[derive(Debug, Clone, Copy)]
struct Told {
    token: Token,
    id: ClaimId,
}

impl Layer for Check {
    fn around<'a>(&'a self, call: Call<'a>, next: Next<'a>) -> Reply<'a, Answer> {
        Box::pin(async move {
            let told_before = match call {
                Call::Enter { lock, .. } => self.told(lock),
                _ => None,
            };
            let answer = next.run(call).await?;
            match self.judge(call, &answer, next.profile(), told_before) {
                Ok(()) => Ok(answer),
                Err(broken) => Err(Error::bug(format!("a promise was broken by `{}`: {broken}", call.word()))),
            }
        })
    }
}

type Verdict = Result<(), String>;

fn require(kept: bool, promise: impl FnOnce() -> String) -> Verdict {
    if kept { Ok(()) } else { Err(promise()) }
}

impl Check {
    fn judge(&self, call: Call<'_>, answer: &Answer, profile: &Profile, before: Option<Told>) -> Verdict {
        match (call, answer) {
            (Call::Enter { lock, claim }, Answer::Standing(standing)) => {
                self.judge_standing(lock, claim, standing, profile, before)
            }
            (Call::Renew { held }, Answer::Renewals(renewals)) => {
                require(held.len() == renewals.len(), || "as many answers as holds".into())?;
                for (held, renewal) in held.iter().zip(renewals) {
                    if let Renewal::Renewed { lease } = renewal {
                        require(*lease + ROUNDING >= held.lease, || {
                            format!("renewed for {lease:?} < {:?}", held.lease)
                        })?;
                    }
                }
                Ok(())
            }
            (Call::Inspect { page }, Answer::Lines(lines)) => {
                require(lines.len() <= page.limit, || "no more lines than asked for".into())?;
                require(lines.is_sorted_by(|a, b| a.name < b.name), || "lines in the order of names".into())?;
                require(lines.iter().all(|line| !line.claims.is_empty()), || "no empty lines".into())
            }
            (Call::Update { op, .. }, Answer::Cell(reply)) => {
                require(belongs(&op.action, reply), || format!("{reply:?} does not answer {:?}", op.action))
            }
            _ => Ok(()),
        }
    }

    fn judge_standing(
        &self,
        lock: &Name,
        claim: &Claim,
        standing: &Standing,
        profile: &Profile,
        before: Option<Told>,
    ) -> Verdict {
        match standing {
            Standing::Held { token, lease } => {
                let full = claim.store_lease();
                require(*lease <= full.max(MAX_LEFT) + ROUNDING, || format!("{lease:?} left of {full:?}"))?;
                let expected = profile.tokens != Tokens::None;
                require(token.is_some() == expected, || format!("tokens are {:?}", profile.tokens))?;
                let exclusive = claim.weight == claim.capacity;
                match (token, before) {
                    (Some(token), Some(told)) if told.id == claim.id => {
                        require(*token == told.token, || format!("one token per claim: {} then {token}", told.token))?;
                    }
                    (Some(token), Some(told)) if exclusive => {
                        require(*token > told.token, || format!("token {token} told after {}", told.token))?;
                    }
                    _ => {}
                }
                if let (true, Some(token)) = (exclusive, token) {
                    self.remember(lock, Told { token: *token, id: claim.id });
                }
                Ok(())
            }
            Standing::Waiting { .. } => {
                require(claim.patience != Patience::Now, || "a claim without patience is not queued".into())
            }
            Standing::Refused { .. } => Ok(()),
        }
    }

    fn told(&self, lock: &Name) -> Option<Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).get(lock).copied()
    }

    fn remember(&self, lock: &Name, told: Told) {
        let mut all = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= REMEMBERED && !all.contains_key(lock) {
            all.clear();
        }
        let entry = all.entry(lock.clone()).or_insert(told);
        if told.token > entry.token {
            *entry = told;
        }
    }
}

/// Stores round leases to their own unit.
const ROUNDING: std::time::Duration = std::time::Duration::from_millis(1);
/// A claim that asks again with a shorter lease keeps the longer one it has.
const MAX_LEFT: std::time::Duration = crate::limits::LEASE_MAX.saturating_add(crate::limits::DELAY_MAX);

fn belongs(action: &CellAction, reply: &CellReply) -> bool {
    use CellAction as A;
    use CellReply as R;
    matches!(
        (action, reply),
        (A::Put { .. } | A::Remove { .. }, R::Done { .. } | R::Conflict { .. })
            | (A::Add { .. } | A::Max { .. }, R::Number { .. })
            | (A::Take { .. }, R::Number { .. } | R::TooLow { .. })
            | (A::Window { .. } | A::Gcra { .. }, R::Admitted { .. } | R::Limited { .. })
            | (A::FenceEnter { .. }, R::Entered { .. } | R::Stale { .. })
            | (A::FencedPut { .. }, R::Done { .. } | R::Stale { .. })
    )
}
