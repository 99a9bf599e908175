//! Fuzz targets: everything that reads what others send, tried with what nobody would send.
//!
//! A target is a function of bytes that panics when something does not hold; what it asserts stands at its top. `cargo
//! test` replays the files of `corpus/` and a few thousand mutations of them; for longer, by hand:
//!
//! ```text
//! cargo run --profile fuzz -p lockkeeper-fuzz -- url --for 10m
//! ```
//!
//! (`--release` is the same without checks for overflow.) A new target is one line in [`TARGETS`] and a folder of that name in `corpus/`. Surprise: there is no feedback from
//! coverage, since that needs a nightly compiler; instead mutations know numbers, lengths and the words of each format.
//! Every target is a `fn(&[u8])`, so that `cargo fuzz` can wrap it: `fuzz_target!(|data: &[u8]| (target.run)(data))`.
#![forbid(unsafe_code)]

pub mod corpus;
pub mod mutate;
pub mod trial;

mod core_text;
mod etcd_cells;
mod etcd_doctor;
mod etcd_lines;
mod etcd_news;
mod etcd_words;
mod histories;
mod program;
mod redis_cells;
mod redis_doctor;
mod redis_lines;
mod sqlite_rows;
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

/// Pieces of the protocol of Redis.
const RESP: &[&str] = &[
    "*0\r\n",
    "*1\r\n",
    "*-1\r\n",
    "%1\r\n",
    "$-1\r\n",
    "$0\r\n\r\n",
    ":0\r\n",
    ":-1\r\n",
    "+OK\r\n",
    "-ERR \r\n",
    "_\r\n",
    "#t\r\n",
    ",1.5\r\n",
    "(123456789012345678901234567890\r\n",
    "=8\r\ntxt:some\r\n",
    "$1\r\nH\r\n",
    "$1\r\nW\r\n",
    "hushhush",
    "\u{1b}[2J",
];

/// Values of rows, as the targets of SQLite read them.
const ROWS: &[&str] = &["i 0\n", "i -1\n", "r 1.5\n", "t mutex\n", "t \n", "x 00\n", "n\n", "-\n", "t \u{1b}[2J\n"];

/// Words of histories.
const HISTORY: &[&str] = &[
    "== registers\n",
    "== faults\n",
    "== after\n",
    "== worker 0 1\n",
    "\"event\":\"held\"",
    "\"event\":\"left\"",
    "\"op\":",
    "\"at\":",
    "\"sent\":",
    "null",
    "\"token\":\"1024\"",
    "\"answer\":\"unknown\"",
];

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
    Target {
        name: "redis-record",
        about: "what stands at a holder key of Redis, and owners",
        words: &["lk1:", "lk1=", ":", " ", "00000000000000000000000000000007", "\u{1b}[2J", "                "],
        run: redis_lines::record,
    },
    Target { name: "redis-answers", about: "the protocol of Redis, in pieces", words: RESP, run: redis_lines::answers },
    Target {
        name: "redis-news",
        about: "news that Redis pushes to those who wait",
        words: &["lk1=", "11111111111111111111111111111111", ":", " ", "~", "30000", "1700000000000000", " 2"],
        run: redis_lines::news,
    },
    Target {
        name: "redis-lines",
        about: "answers of Redis to enter, renew, SCAN and TIME",
        words: RESP,
        run: redis_lines::lines,
    },
    Target {
        name: "redis-inspect",
        about: "answers of Redis to those who look at a line",
        words: RESP,
        run: redis_lines::inspect,
    },
    Target { name: "redis-errors", about: "error replies of Redis", words: RESP, run: redis_lines::errors },
    Target {
        name: "redis-cells",
        about: "cells of Redis: fields of a hash, answers of scripts",
        words: &[
            "$-1\r\n",
            "$5\r\nempty\r\n",
            "$4\r\ngone\r\n",
            "add ",
            "take ",
            "window ",
            "gcra ",
            "enter ",
            "write ",
        ],
        run: redis_cells::cells,
    },
    Target {
        name: "redis-doctor",
        about: "what a Redis tells of itself: INFO, CONFIG, the slow log",
        words: &[
            "= ANSWERS\n",
            ":",
            "aof_enabled:1\r\n",
            "role:slave\r\n",
            "\u{1b}[2J",
            "%1\r\n",
            "$-1\r\n",
            "maxmemory:",
        ],
        run: redis_doctor::doctor,
    },
    Target {
        name: "etcd-record",
        about: "what stands at the key of a claim in etcd",
        words: &["lk1 ", " ", "\n", "mutex", "semaphore", "left", "-", "00000000000000000000000000000007", "\u{1b}[2J"],
        run: etcd_lines::record,
    },
    Target {
        name: "etcd-lines",
        about: "answers of etcd with the keys of lines, as words or as bytes of its protocol",
        words: etcd_words::LINES,
        run: etcd_lines::lines,
    },
    Target {
        name: "etcd-cells",
        about: "cells of etcd: what stands at a key, and what operations make of it",
        words: &["lk1 ", "bytes ", "number ", "empty ", " 0 0\n", "\n", "add ", "take ", "enter ", "write ", "max "],
        run: etcd_cells::cells,
    },
    Target {
        name: "etcd-news",
        about: "what etcd tells those who watch a line",
        words: etcd_words::NEWS,
        run: etcd_news::news,
    },
    Target {
        name: "etcd-doctor",
        about: "what the members of an etcd tell of themselves: status, members, counts",
        words: etcd_words::DOCTOR,
        run: etcd_doctor::doctor,
    },
    Target {
        name: "etcd-errors",
        about: "what etcd, or the way to it, says instead of an answer",
        words: &["16\n", "14\n", "cause ", "hushhush", "\u{1b}[2J", "authentication failed", "permission denied", "\n"],
        run: etcd_doctor::errors,
    },
    Target { name: "sqlite-claims", about: "rows of claims in a SQLite file", words: ROWS, run: sqlite_rows::claims },
    Target { name: "sqlite-cells", about: "rows of cells in a SQLite file", words: ROWS, run: sqlite_rows::cells },
    Target {
        name: "history",
        about: "the files of a run of verify, line by line",
        words: HISTORY,
        run: histories::history,
    },
    Target {
        name: "verdict",
        about: "whole histories of verify, and the checks over them",
        words: HISTORY,
        run: histories::verdict,
    },
    Target {
        name: "registers",
        about: "what workers of verify and registers say to each other",
        words: &["{\"ask\":", "{\"hello\":", "\"token\":", "\"guard\":\"fenced\"", "null", "\n"],
        run: histories::registers,
    },
    Target {
        name: "servers",
        about: "the list of servers that are up, of the rig",
        words: &["\"servers\"", "\"pid\":", "\"port\":", "null", "[", "]", "{", "}"],
        run: histories::servers,
    },
];

/// The target of this name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
