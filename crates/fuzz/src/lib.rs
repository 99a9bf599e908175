//! Fuzz targets: everything that reads what others send, tried with what nobody would send.
//!
//! A target is a function of bytes that panics when something does not hold; what it asserts stands at its top. `cargo
//! test` replays the files of `corpus/` and a few thousand mutations of them; for longer, by hand:
//!
//! ```text
//! cargo run --release -p lockkeeper-fuzz -- url --for 10m
//! ```
//!
//! A new target is one line in [`TARGETS`] and a folder of that name in `corpus/`. Surprise: there is no feedback from
//! coverage, since that needs a nightly compiler; instead mutations know numbers, lengths and the words of each format.
//! Every target is a `fn(&[u8])`, so that `cargo fuzz` can wrap it: `fuzz_target!(|data: &[u8]| (target.run)(data))`.
#![forbid(unsafe_code)]

pub mod corpus;
pub mod mutate;
pub mod trial;

mod core_text;
mod program;
mod urls;

/// One thing that reads what others send.
pub struct Target {
    /// Its name, and that of its folder in `corpus/`.
    pub name: &'static str,
    /// What it reads, for people.
    pub about: &'static str,
    /// Words of its format, for mutations.
    pub words: &'static [&'static str],
    /// Reads it, and panics if something does not hold.
    pub run: fn(&[u8]),
}

/// Every target there is.
pub const TARGETS: &[Target] = &[
    Target {
        name: "name",
        about: "names of locks and cells, prefixes",
        words: &["/", "//", "..", ".", "{", "}", "\u{7f}", "\u{e000}", "\u{ffff}", "é", "\u{2028}", "\u{10ffff}"],
        run: core_text::name,
    },
    Target {
        name: "ids",
        about: "claim ids, tokens, kinds and requirements as text",
        words: &["+", "-", "0x", "mutex", "read-write", "tokens", "٣"],
        run: core_text::ids,
    },
    Target { name: "url", about: "the URLs of stores, as the library reads them", words: urls::WORDS, run: urls::url },
    Target {
        name: "shown-url",
        about: "the URLs of stores, as the program shows them",
        words: urls::WORDS,
        run: program::shown_url,
    },
    Target { name: "config", about: "the program's config files", words: program::CONFIG_WORDS, run: program::config },
    Target {
        name: "times",
        about: "times, permits and rates on the command line",
        words: &["ns", "us", "ms", "s", "m", "h", "d", "w", "M", "y", " ", "/", ".", "forever", "µs", "min", "+"],
        run: program::times,
    },
    Target {
        name: "nested",
        about: "what a run inside a run is told and asks",
        words: &[
            "{\"Joined\":{\"tokens\":[",
            "null",
            "\"deadline\":",
            "\"Stranger\"",
            "{\"Lost\":\"",
            "\"}",
            "]",
            "\n",
        ],
        run: program::nested,
    },
    Target {
        name: "guard",
        about: "what the guard of a command is told",
        words: &["\0\0\0\0", "\u{1}\0\0\0"],
        run: program::guard,
    },
];

/// The target of this name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
