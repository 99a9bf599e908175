//! The builder methods of the blocking kinds, each handed on to the async kind inside.
//!
//! They are written as a list, `options!`; what every lock can be asked for stands once, in `terms!`.

/// Methods that change `inner` and return the kind.
macro_rules! options {
    ($kind:ident: $($(#[$doc:meta])+ $name:ident($($value:ident: $type:ty)?);)+) => {
        impl $kind {
            $(
                $(#[$doc])+
                #[must_use]
                pub fn $name(mut self $(, $value: $type)?) -> Self {
                    self.inner = self.inner.$name($($value)?);
                    self
                }
            )+
        }
    };
}

/// What mutexes, read-write locks, semaphores and elections can be asked for.
macro_rules! terms {
    ($kind:ident) => {
        options! { $kind:
            /// How long to wait for it (60 s).
            wait(wait: ::std::time::Duration);
            /// Waits without end.
            forever();
            /// How long it stays taken after the process is gone (30 s). A living hold renews it.
            lease(lease: ::std::time::Duration);
            /// A fixed lease: the hold is lost after this time, and nothing renews it.
            at_most(lease: ::std::time::Duration);
            /// It stays taken for at least this long since it was taken, also after an earlier release.
            at_least(at_least: ::std::time::Duration);
            /// After a crash it stays taken for this much longer than the lease (0 to 60 s), for resources that
            /// cannot check tokens. A clean release frees it at once.
            lock_delay(delay: ::std::time::Duration);
            /// First come, first served, or `Unsupported` on a store that cannot.
            fair();
            /// Tries again and again with growing pauses instead of standing in line: for very short waits.
            spin();
            /// A few bytes for people, shown with the claim (4 KiB at the most).
            note(note: impl Into<Vec<u8>>);
            /// Who asks. An owner that already holds it comes in again without asking the store; it is released
            /// when the last of its holds is. See also [`as_owner`](crate::blocking::as_owner).
            owner(owner: &$crate::Owner);
        }
    };
}

pub(super) use {options, terms};
