//! The scripts, as they stand in their `.lua` files, with the hash they are called by.
//!
//! Surprise: scripts are joined of files when this is compiled, and share their locals. Those of the line are blocks in the
//! order in which they run, some of them twice (line.lua says why); those of cells have `cell.lua` in front. Nothing is put
//! together at run time, except in builds with seeded bugs. Values only ever travel as KEYS and ARGV.

#[cfg(any(test, feature = "mutants"))]
mod seeds;

use std::sync::LazyLock;

/// One script.
pub(crate) struct Script {
    text: fn() -> &'static str,
    hash: LazyLock<String>,
}

impl Script {
    const fn new(text: fn() -> &'static str, hash: fn() -> String) -> Self {
        Self { text, hash: LazyLock::new(hash) }
    }

    pub(crate) fn text(&self) -> &'static str {
        (self.text)()
    }

    pub(crate) fn hash(&self) -> &str {
        &self.hash
    }
}

#[cfg(not(feature = "mutants"))]
macro_rules! joined {
    ($($file:literal)+) => { || concat!($(include_str!($file)),+) };
}

#[cfg(feature = "mutants")]
macro_rules! joined {
    ($($file:literal)+) => {{
        static TEXT: LazyLock<String> = LazyLock::new(|| [$(seeds::planted($file, include_str!($file))),+].concat());
        || &TEXT
    }};
}

macro_rules! script {
    ($(#[$doc:meta])* $name:ident = $($file:literal)+) => {
        $(#[$doc])*
        pub(crate) static $name: Script =
            Script::new(joined!($($file)+), || redis::Script::new($name.text()).get_hash().to_owned());
    };
}

script!(
    /// A claim comes into the line or asks again.
    ENTER = "begin.lua" "line.lua" "go.lua" "settle.lua" "again.lua" "admit.lua" "enter.lua" "go.lua" "admit.lua" "hold.lua" "write.lua"
);
script!(
    /// A claim leaves.
    LEAVE = "begin.lua" "pass.lua" "line.lua" "go.lua" "settle.lua" "admit.lua" "leave.lua" "go.lua" "admit.lua" "write.lua"
);
script!(
    /// A hold in a line is renewed.
    PROLONG = "begin.lua" "line.lua" "go.lua" "settle.lua" "admit.lua" "prolong.lua" "write.lua"
);
script!(
    /// An observer wants to be told.
    OBSERVE = "observe.lua"
);
script!(
    /// Fast-lane holds are released.
    RELEASE = "release.lua"
);
script!(
    /// Fast-lane holds are renewed.
    RENEW = "renew.lua"
);
script!(
    /// A fast-lane hold is numbered above the floor.
    NUMBER = "number.lua"
);
script!(
    /// A line is looked at.
    INSPECT = "inspect.lua"
);
script!(
    /// Bytes with a version are set or removed.
    CELL_VALUE = "cell.lua" "cell_value.lua"
);
script!(
    /// A counter is changed.
    CELL_COUNT = "cell.lua" "cell_count.lua"
);
script!(
    /// A limiter is asked.
    CELL_LIMIT = "cell.lua" "cell_limit.lua"
);
script!(
    /// A fence is entered, or the bytes behind it are set.
    CELL_FENCE = "cell.lua" "cell_fence.lua"
);
