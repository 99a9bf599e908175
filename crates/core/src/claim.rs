//! What stands in a line: a claim, who made it, and the token it earns.
//!
//! Surprise: the *client* chooses the claim id, before the first request. That alone makes a retry legal (C1).

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::limits;

/// 128 random bits that name one logical acquire, reused by every retry of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClaimId(u128);

impl ClaimId {
    /// A fresh id from the system's secure randomness.
    pub fn random() -> Result<Self> {
        Ok(Self(pool::random_u128()?))
    }

    /// The id from the 16 bytes a store kept.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }

    /// The 16 bytes a store keeps.
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// Its 32 hexadecimal digits, for stores that keep text.
    pub fn to_hex(self) -> [u8; 32] {
        hex(self.0)
    }
}

/// By hand, since every call of a store that keeps text writes one, and the formatter takes ten times as long.
fn hex(number: u128) -> [u8; 32] {
    let bytes = number.to_be_bytes();
    std::array::from_fn(|at| {
        let byte = bytes[at / 2];
        b"0123456789abcdef"[usize::from(if at % 2 == 0 { byte >> 4 } else { byte & 15 })]
    })
}

impl fmt::Display for ClaimId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.to_hex()))
    }
}

impl fmt::Debug for ClaimId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for ClaimId {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let well_formed = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
        match u128::from_str_radix(text, 16) {
            Ok(id) if well_formed => Ok(Self(id)),
            _ => Err(Error::invalid("claim id", "it is not 32 hexadecimal digits")),
        }
    }
}

mod pool {
    //! Random numbers of the system, fetched for some ids at a time: the system call costs as much as all else that a
    //! claim needs.
    //!
    //! Surprise: the clock is mixed in. A process or a machine that was copied with its memory has the same numbers left
    //! as its original, and ids that are used twice would let both in.

    use std::cell::RefCell;

    use crate::error::{Error, ErrorKind, Result};
    use crate::time::Clock;

    const IDS: usize = 32;

    thread_local! {
        static LEFT: RefCell<Vec<u128>> = const { RefCell::new(Vec::new()) };
    }

    pub(super) fn random_u128() -> Result<u128> {
        let number = LEFT.with_borrow_mut(|left| {
            if left.is_empty() {
                let mut bytes = [0; 16 * IDS];
                getrandom::fill(&mut bytes).map_err(|error| {
                    Error::new(ErrorKind::Unavailable, "the system gave no random numbers").with_source(error)
                })?;
                left.extend(bytes.as_chunks().0.iter().copied().map(u128::from_be_bytes));
            }
            left.pop().ok_or_else(|| Error::bug("no random number was left"))
        })?;
        Ok(number ^ u128::from(Clock::system().now().as_nanos()))
    }
}

/// The fencing token of a hold: of two conflicting holds the later has the greater, and no two have the same.
///
/// It is the store's number shifted left by ten, plus a count of local hand-overs, and fits a signed 64-bit column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(u64);

impl Token {
    /// How many bits count local hand-overs.
    pub const LOCAL_BITS: u32 = 10;
    /// The greatest store number that fits.
    pub const NUMBER_MAX: u64 = (1 << (63 - Self::LOCAL_BITS)) - 1;

    /// The token of a store number that was not handed over locally; `None` if the number does not fit.
    pub const fn of_number(number: u64) -> Option<Self> {
        if number > Self::NUMBER_MAX {
            return None;
        }
        Some(Self(number << Self::LOCAL_BITS))
    }

    /// The next token of the same store number, for a local hand-over; `None` when these are used up.
    pub const fn handed_on(self) -> Option<Self> {
        if self.0 % (1 << Self::LOCAL_BITS) == (1 << Self::LOCAL_BITS) - 1 {
            return None;
        }
        Some(Self(self.0 + 1))
    }

    /// A token that was read back, from a store or from a user.
    pub const fn from_u64(raw: u64) -> Self {
        Self(raw)
    }

    /// The token as the plain number that goes to the resource.
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl FromStr for Token {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        match text.parse() {
            Ok(raw) if text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(Self(raw)),
            _ => Err(Error::invalid("token", "it is not a whole number")),
        }
    }
}

/// Who makes claims: a host, a process and a label for people, and an identity for re-entry and deadlock reports.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Owner(Arc<OwnerParts>);

tokio::task_local! {
    static SCOPE: Owner;
}

#[derive(PartialEq, Eq, Hash)]
struct OwnerParts {
    id: u128,
    host: Box<str>,
    pid: u32,
    label: Box<str>,
}

impl Owner {
    /// A new owner on this host and in this process; `label` is for people and may be empty.
    pub fn new(label: &str) -> Result<Self> {
        limits::label(label)?;
        Ok(Self::stored(pool::random_u128()?, &crate::time::host_name(), std::process::id(), label))
    }

    /// Runs a future in the name of this owner: locks it takes in there without naming an owner are re-entrant.
    ///
    /// An owner is one line of work; it is not passed on to tasks that the future spawns.
    ///
    /// ```
    /// # use lockkeeper_core::{Keeper, Owner, Result, stores::Memory};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let keeper = Keeper::with_store(Memory::shared());
    /// async fn inner(keeper: &Keeper) -> Result<()> {
    ///     keeper.mutex("orders").lock().await?.release().await // comes in again, without asking the store
    /// }
    /// Owner::new("importer")?
    ///     .scope(async {
    ///         let hold = keeper.mutex("orders").lock().await?;
    ///         inner(&keeper).await?;
    ///         hold.release().await
    ///     })
    ///     .await
    /// # }).unwrap();
    /// ```
    pub async fn scope<F: Future>(self, work: F) -> F::Output {
        SCOPE.scope(self, work).await
    }

    /// The owner whose scope this runs in.
    pub(crate) fn in_scope() -> Option<Self> {
        SCOPE.try_with(Clone::clone).ok()
    }

    /// An owner read back from a store. Anybody may have written there, and it is shown to people: control characters,
    /// which a terminal would obey, are replaced.
    pub fn stored(id: u128, host: &str, pid: u32, label: &str) -> Self {
        let shown = |text: &str| match text.contains(char::is_control) {
            true => text.replace(char::is_control, "\u{fffd}").into(),
            false => text.into(),
        };
        Self(Arc::new(OwnerParts { id, host: shown(host), pid, label: shown(label) }))
    }

    /// The identity: two owners with the same description are still two.
    pub fn id(&self) -> u128 {
        self.0.id
    }

    /// The name of the host.
    pub fn host(&self) -> &str {
        &self.0.host
    }

    /// The process on that host.
    pub fn pid(&self) -> u32 {
        self.0.pid
    }

    /// What the program calls itself; may be empty.
    pub fn label(&self) -> &str {
        &self.0.label
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} pid {}", self.host(), self.pid())?;
        if !self.label().is_empty() {
            write!(f, " ({})", self.label())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owner({self}, {:032x})", self.id())
    }
}

/// What sort of lock a line is; one name is one kind at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LockKind {
    /// One at a time.
    Mutex,
    /// Many readers or one writer.
    ReadWrite,
    /// Permits out of a fixed number.
    Semaphore,
    /// A mutex whose note is what the leader proclaims.
    Election,
    /// A mutex around a run that is recorded.
    Once,
}

impl LockKind {
    /// The kind as a lower-case word, as stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mutex => "mutex",
            Self::ReadWrite => "read-write",
            Self::Semaphore => "semaphore",
            Self::Election => "election",
            Self::Once => "once",
        }
    }
}

impl fmt::Display for LockKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for LockKind {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        [Self::Mutex, Self::ReadWrite, Self::Semaphore, Self::Election, Self::Once]
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or_else(|| {
                // It came from a store, and may be anything: what a terminal obeys is not passed on.
                let text = text.escape_debug();
                Error::new(ErrorKind::Foreign, format!("`{text}` is not a kind of lock known here"))
            })
    }
}

/// What a claim does when it cannot be in at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Patience {
    /// It is refused and leaves nothing behind.
    Now,
    /// It stands in line.
    Queue,
    /// It must stand already: a question or a change that never makes a claim. Absent, it is refused.
    Present,
}

/// One claim: a weight out of a capacity, with a lease. What `enter` is given.
#[derive(Debug, Clone)]
pub struct Claim {
    /// Chosen by the client; every retry uses the same.
    pub id: ClaimId,
    /// Who asks.
    pub owner: Owner,
    /// The kind of the lock; another kind on the same name is a mismatch.
    pub kind: LockKind,
    /// How much of the capacity it takes.
    pub weight: u32,
    /// The capacity all claims of the line must agree on.
    pub capacity: u32,
    /// How long the claim stands without being renewed.
    pub lease: Duration,
    /// How much longer the store keeps the name taken after a crash (C9).
    pub delay: Duration,
    /// Must the line be served in order? Only made where the store's profile says so.
    pub fair: bool,
    /// Stand in line, or be refused?
    pub patience: Patience,
    /// A few bytes for people, or what a leader proclaims.
    pub note: Vec<u8>,
}

impl Claim {
    /// How long the store keeps a held claim: the lease and the lock-delay (C9).
    pub fn store_lease(&self) -> Duration {
        self.lease + self.delay
    }

    /// How often a waiting claim asks again; asking is its heartbeat (C7).
    pub fn ask_every(&self) -> Duration {
        (self.lease / 3).min(Duration::from_secs(2))
    }

    /// How long the store keeps a waiting claim that does not ask again: three questions, never above the lease.
    pub fn waiting_lease(&self) -> Duration {
        (self.ask_every() * 3).min(self.lease)
    }

    /// Refuses a claim outside the limits, before anything is sent.
    pub fn check(&self, lease_min: Duration, lease_max: Duration) -> Result<()> {
        limits::lease(self.lease, lease_min, lease_max)?;
        limits::delay(self.delay)?;
        limits::note(&self.note)?;
        if self.weight == 0 || self.weight > self.capacity {
            return Err(Error::invalid(
                "weight",
                format!("{} is not between 1 and the capacity of {}", self.weight, self.capacity),
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_fit_a_signed_column() {
        let top = Token::of_number(Token::NUMBER_MAX).unwrap();
        assert!(i64::try_from(top.as_u64()).is_ok());
        assert_eq!(Token::of_number(Token::NUMBER_MAX + 1), None);
        // Microseconds since 1970 in the year 2255.
        assert!(Token::of_number(285 * 365 * 24 * 3_600 * 1_000_000).is_some());
    }

    #[test]
    fn what_a_terminal_obeys_is_not_passed_on() {
        let owner = Owner::stored(1, "web\u{1b}[2J", 2, "a\nb\u{9b}");
        assert_eq!(owner.to_string(), "web\u{fffd}[2J pid 2 (a\u{fffd}b\u{fffd})");
        let error = "mu\u{1b}]0;x\u{7}tex".parse::<LockKind>().unwrap_err();
        assert!(!error.to_string().contains(char::is_control), "{error:?}");
    }

    #[test]
    fn tokens_are_digits() {
        assert_eq!("8841".parse::<Token>().unwrap(), Token::from_u64(8_841));
        for bad in ["", "+5", "-5", " 5", "18446744073709551616"] {
            assert!(bad.parse::<Token>().is_err(), "{bad}");
        }
    }

    #[test]
    fn claim_ids_survive_text_and_bytes() {
        let id = ClaimId::random().unwrap();
        assert_eq!(id.to_string().parse::<ClaimId>().unwrap(), id);
        assert_eq!(ClaimId::from_bytes(id.to_bytes()), id);
        for bad in ["", "xyz", "+0000000000000000000000000000000", &"0".repeat(33)] {
            assert!(bad.parse::<ClaimId>().is_err(), "{bad}");
        }
    }
}
