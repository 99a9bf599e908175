//! The help pages: one table, from which the overview and each task's page are made.
//!
//! The surprise: a task without a page here does not exist; the dispatcher asks for the page first.

use lockkeeper_rig::Trouble;

/// Name, one line for the overview, usage, the rest of its page.
const TASKS: &[(&str, &str, &str, &str)] = &[
    (
        "setup",
        "install what the tests need",
        "cargo xtask setup [--install]",
        "Looks for a C compiler and what the servers of the rig need, and installs the Debian packages that are missing: at\n\
         once as root, through sudo with --install; otherwise prints the command to type and fails. Packages do not start\n\
         their services. Touches nothing when all is there.",
    ),
    (
        "up",
        "start the servers that tests share",
        "cargo xtask up",
        "Starts one of each store's server on free loopback ports and writes target/rig/servers.json. Servers that run\n\
         already are kept. Plain `cargo test` then runs the tests that need servers, too. Variants of a server (TLS, users,\n\
         a clock to step) are installed with it and started by the tests that need one.",
    ),
    (
        "down",
        "stop them",
        "cargo xtask down",
        "Stops what `up` started, by pid and start time, and removes their folders.",
    ),
    (
        "test",
        "run every test, on real servers, and count the laws",
        "cargo xtask test [--only STORE,…] [--install] [--keep]",
        "Set-up, servers, `cargo test --workspace`, and a table of the laws per store. A store without a single law run is\n\
         a failure.\n\n\
         \x20 --only STORE,…  expect, and start servers for, these stores only\n\
         \x20 --install       let the set-up use sudo\n\
         \x20 --keep          leave the servers up afterwards",
    ),
    (
        "examples",
        "run every example",
        "cargo xtask examples",
        "Builds all examples and runs each, without input and with a time limit. One that does not end with 0 is a failure.",
    ),
    (
        "interop",
        "let other people's locks and ours want the same names",
        "cargo xtask interop [--full] [--stand-in] [--install] [STORE|PEER…]",
        "Installs redis-py, node-redlock and rslock for Redis, Go's concurrency package for etcd, below target/interop, and\n\
         lets each (and etcdctl) and ours take the same lock of a server of its own: 50 hand-overs between the two sides and\n\
         a case for everything that can go wrong. Two inside at once, a peer that cannot be installed, or a judge that misses\n\
         a fault is a failure. interop/README.md says more.\n\n\
         \x20 --full      hundreds of hand-overs, for every kind of lock\n\
         \x20 --stand-in  an honest stand-in in our place: is it us or the peer?\n\
         \x20 --install   let the set-up use sudo",
    ),
    (
        "verify",
        "hurt stores and clients, and see what happens to the locks",
        "cargo xtask verify [--smoke | --all | --only TARGET,… | --mutants] [--quick] [--record] [--render] [--install]",
        "Runs `lockkeeper verify` row by row: the smoke matrix of about two minutes, or with --all every target against\n\
         everything that can be done to it. A check that fails, a row that cannot be run, too few acknowledged, or a control\n\
         without locks that loses nothing is a failure. Histories of rows that failed stay in target/verify.\n\n\
         \x20 --all           the full matrix, in release mode: more than half an hour\n\
         \x20 --only TARGET,… of that, these targets\n\
         \x20 --mutants       every seeded bug must be caught: a quarter of an hour\n\
         \x20 --quick         short rows in a debug build, to see that they work\n\
         \x20 --record        write docs/verified.json and docs/verified.md\n\
         \x20 --render        only make docs/verified.md from docs/verified.json\n\
         \x20 --install       let the set-up use sudo",
    ),
    (
        "bench",
        "measure",
        "cargo xtask bench [NAME…] [--no-peers]",
        "Runs the benchmarks named, or all, in release mode. For `redis` and `etcd`, other people's clients are installed\n\
         from their registries below target/peers and measured beside ours, unless --no-peers is given. What their program\n\
         says about itself:",
    ),
    (
        "tidy",
        "check the tree's own rules",
        "cargo xtask tidy",
        "File and function length, module headers, leftovers, lints, machine paths, registry hosts, dead links. Prints\n\
         `path:line: rule: what to do`. Also runs as a test.",
    ),
    (
        "licences",
        "check what we depend on",
        "cargo xtask licences",
        "Licences, banned crates and sources of everything in Cargo.lock. Two versions of one crate are a note.",
    ),
];

/// All tasks, one line each.
pub fn overview() -> String {
    let rows: Vec<String> = TASKS.iter().map(|(name, line, ..)| format!("  {name:<10} {line}")).collect();
    format!("usage: cargo xtask TASK [OPTIONS]\n\n{}\n\n`cargo xtask TASK --help` says more.", rows.join("\n"))
}

/// The page of one task.
pub fn page(task: &str) -> Result<String, Trouble> {
    let found = TASKS.iter().find(|(name, ..)| *name == task);
    found.map(|(_, _, usage, text)| format!("usage: {usage}\n\n{text}")).ok_or_else(|| {
        let names: Vec<&str> = TASKS.iter().map(|(name, ..)| *name).collect();
        let what = if task.is_empty() { "no task given".to_string() } else { format!("there is no task `{task}`") };
        Trouble::new(what).hint(format!("one of: {}; `cargo xtask --help` says what they do", names.join(", ")))
    })
}
