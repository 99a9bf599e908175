//! Seeded bugs, which `lockkeeper verify` must catch: only in builds with the feature `mutants`, and there only the one
//! that the variable `LOCKKEEPER_MUTANT` names.
//!
//! Surprise: without the feature [`on`] is a constant `false`, so nothing of a bug is left in what people build; with it,
//! an optimised build is refused by the compiler. How each bug shows, and which check must see it, stands in the crate
//! `lockkeeper-verify`.

#[cfg(all(feature = "mutants", not(debug_assertions)))]
compile_error!("the feature `mutants` puts bugs into locks on purpose: it has no place in an optimised build");

macro_rules! mutants {
    ($($mutant:ident $name:literal $what:literal)+) => {
        /// A seeded bug.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "what each of them is, `what` says")]
        pub enum Mutant {
            $($mutant),+
        }

        impl Mutant {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$mutant),+];

            /// The name that chooses it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$mutant => $name),+
                }
            }

            /// What the bug is, in a sentence.
            pub const fn what(self) -> &'static str {
                match self {
                    $(Self::$mutant => $what),+
                }
            }
        }
    };
}

mutants! {
    BlindDelete "blind-delete"
        "a release at the store takes out whoever is in, and does not compare the claim"
    BlindRenew "blind-renew"
        "a renewal at the store prolongs whatever is there, and puts in again what is not"
    NoRenew "no-renew"
        "the watchdog moves deadlines on without asking the store"
    DeadlineAfterReply "deadline-after-reply"
        "a deadline counts from when the answer came, not from before the question"
    WallClockDeadline "wall-clock-deadline"
        "deadlines are kept by the wall clock"
    NewClaimOnRetry "new-claim-on-retry"
        "every further question of one acquire is asked with a claim of its own"
    PlainCounterToken "plain-counter-token"
        "tokens come from a counter that is lost with the server's memory"
    WriteOnlyFence "write-only-fence"
        "the fence is not entered before the read, so that only writes are fenced"
    SetThenExpire "set-then-expire"
        "a free lock is taken without an end, which is set by a second command"
    NewsOnly "news-only"
        "who waits relies on being told, and does not ask again by itself"
    RetryIsReentry "retry-is-reentry"
        "an acquire that asked again after an error counts as two, and one release is not enough"
    WatchdogNotCancelled "watchdog-not-cancelled"
        "renewals of a hold end only when its release was confirmed, and nobody repeats the release"
    SemaphoreByCount "semaphore-by-count"
        "permits are counted by one call and taken by another"
    ReaderPastWriter "reader-past-writer"
        "a reader comes in beside readers although a writer waits"
    PartialMultiKept "partial-multi-kept"
        "a multi-lock that did not get all of its names keeps those it got"
    UnlockByKey "unlock-by-key"
        "leaving takes out the first of the line if the claim itself is not there"
    LostOnlyFromServer "lost-only-from-server"
        "a hold ends only when the store says so, and not at its own deadline"
    WakesNobody "wakes-nobody"
        "those who come in by a release are not told"
    HandOverSameToken "hand-over-same-token"
        "a hold that is handed to another task keeps its token"
    DeadWaitersGranted "dead-waiters-granted"
        "claims that wait have no lease: one whose process is gone comes in all the same, for a whole lease"
    NoSweep "no-sweep"
        "a hold in a line that ran out is not taken out"
    UnknownIsRenewed "unknown-is-renewed"
        "a renewal without an answer counts as one that was answered"
    CounterRepeated "counter-repeated"
        "a change of a counter or a cell that is not answered soon is made again, although it may have been done"
    CounterInTwoSteps "counter-in-two-steps"
        "adding to a counter reads it in one call and writes it in another"
    SwapIgnoresVersion "swap-ignores-version"
        "a cell is set whatever version it has"
    ReentryByName "reentry-by-name"
        "whoever asks for a name that any owner of this process holds comes in again"
    InnerReleaseFrees "inner-release-frees"
        "an owner that came in twice is out after the first release"
}

impl std::str::FromStr for Mutant {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Self::ALL.iter().copied().find(|mutant| mutant.name() == name);
        known.ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|mutant| mutant.name()).collect();
            format!("`{name}` is no seeded bug; there are: {}", names.join(", "))
        })
    }
}

/// The variable that chooses the bug, in builds that have them.
pub const VARIABLE: &str = "LOCKKEEPER_MUTANT";

/// Is it in this build at all?
pub const BUILT_IN: bool = cfg!(feature = "mutants");

/// Is this the bug that was chosen?
#[cfg(not(feature = "mutants"))]
pub const fn on(_mutant: Mutant) -> bool {
    false
}

/// Is this the bug that was chosen? A name that is not known ends the process: a run without its bug proves nothing.
#[cfg(feature = "mutants")]
pub fn on(mutant: Mutant) -> bool {
    static CHOSEN: std::sync::LazyLock<Option<Mutant>> = std::sync::LazyLock::new(|| {
        let name = std::env::var_os(VARIABLE)?;
        match name.to_string_lossy().parse() {
            Ok(mutant) => Some(mutant),
            Err(error) => {
                eprintln!("error: {VARIABLE}: {error}");
                std::process::exit(64)
            }
        }
    });
    *CHOSEN == Some(mutant)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compiles only if it is a constant: nothing of a bug is left in such a build.
    #[cfg(not(feature = "mutants"))]
    const _: () = assert!(!on(Mutant::BlindDelete));

    #[test]
    fn without_the_variable_no_bug_is_on() {
        assert!(std::env::var_os(VARIABLE).is_none(), "these tests are to be run without it");
        assert!(Mutant::ALL.iter().all(|mutant| !on(*mutant)));
    }

    #[test]
    fn each_has_a_name_of_its_own_and_is_found_by_it() {
        for mutant in Mutant::ALL {
            assert_eq!(mutant.name().parse(), Ok(*mutant));
            assert!(!mutant.what().ends_with('.'));
        }
        let error = "blind_delete".parse::<Mutant>().unwrap_err();
        assert!(error.contains("blind-delete"), "{error}");
    }
}
