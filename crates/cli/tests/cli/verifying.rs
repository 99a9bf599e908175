//! `verify`: what is refused before anything starts, a run from beginning to end, and judging it again.

use std::path::Path;

use serde_json::Value;

use super::servers::{asked_for, server, url};
use super::support::{Den, Said, output, read, start, text};

/// The password of the user `keeper` of the rig's `redis-acl`: a word that is found nowhere else.
const PASSWORD: &str = "swordfish-of-keeper";

/// What it printed, its exit code, and what it said on stderr.
fn verify(den: &Den, args: &[&str]) -> (String, Option<i32>, String) {
    let mut command = den.lockkeeper();
    command.env_remove("LOCKKEEPER_STORE").arg("verify").args(args);
    let mut started = start(&mut command);
    // Read while it prints: a report may be more than a pipe holds.
    let out = std::io::read_to_string(started.child().stdout.take().expect("a pipe")).expect("text");
    let done = started.end();
    (out, done.status.code(), text(&done.stderr))
}

/// One object on one line.
fn json(said: &str, stderr: &str) -> Value {
    assert_eq!(said.lines().count(), 1, "one object on one line: {said}{stderr}");
    serde_json::from_str(said).expect("JSON")
}

/// Nothing that is fenced was lost, and the exit code says what the checks say. How fast it went is the machine's business:
/// a check of times may fail while other tests keep all processors busy.
#[track_caller]
fn safe(report: &Value, code: Option<i32>) {
    let fenced = &report["updates"][3];
    assert_eq!((&fenced["guard"], &fenced["lost"]), (&"fenced".into(), &0.into()), "{report}");
    for name in ["tokens-rise", "one-token-per-claim", "fenced-order", "fenced-loses-nothing"] {
        let check = report["checks"].as_array().expect("checks").iter().find(|check| check["check"] == name);
        assert_eq!(check.expect(name)["outcome"], "passed", "{report}");
    }
    assert_eq!(code, Some(if report["passed"] == true { 0 } else { 1 }), "{report}");
}

fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).map(|entries| entries.flatten().collect()).unwrap_or_else(|_| Vec::new());
    let mut names: Vec<String> = entries.iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn what_cannot_be_done_is_refused_before_anything_starts() {
    let den = Den::new();
    std::fs::create_dir(den.path("full")).expect("a folder");
    std::fs::write(den.path("full/x"), "mine").expect("a file");
    let cases: &[(&[&str], &str)] = &[
        (&[], "hint: a URL, or one that is started for the run: sqlite, "),
        (&["redys"], "started for a run are: sqlite, "),
        (&["sqlite", "--every", "1ms"], "`--every 1ms` cannot be done"),
        (&["etcd-3", "--nemesis", "step-store"], "its clock cannot be stepped"),
        (&["repro", "etcd-lok"], "etcd-lock"),
        (&["repro", "etcd-lock", "--for", "10ms"], "`--for 10ms` cannot be done"),
        (&["sqlite", "--nemesis", "kil-holder"], "kill-holder, pause-worker"),
        (&["sqlite", "--nemesis", "none,kill-holder"], "`none` and `all` are for themselves"),
        (&["sqlite", "--nemesis", "kill-store"], "it is a file, and has no server"),
        (&["redis://127.0.0.1:1", "--nemesis", "cut,kill-store"], "only what a run started is hurt"),
        (&["sqlite", "--store", "sqlite:x.db"], "named twice"),
        (&["redis://:secret@h"], "LOCKKEEPER_PASSWORD"),
        (&["memory:"], "`memory:` excludes nobody"),
        (&["sqlite", "--for", "0"], "it is from 1s to 6h"),
        (&["sqlite", "--lease", "1ms"], "it is from 100ms to 1m"),
        (&["sqlite", "--think", "3s"], "it is from 0s to 2s"),
        (&["sqlite", "--workers", "0"], "--workers"),
        (&["sqlite", "--work", "sleep"], "read-write"),
        (&["sqlite", "--report", "full"], "holds something already\n  hint: name another one by `--report DIR`"),
        (&["check", "nowhere"], "nowhere"),
        (&["mutants"], "cargo run -p lockkeeper-cli --features mutants -- verify mutants"),
    ];
    for (args, part) in cases {
        let (out, code, said) = verify(&den, args);
        assert_eq!((code, out.as_str()), (Some(64), ""), "{args:?}: {said}");
        assert!(said.contains(part), "{args:?}: `{part}` in\n{said}");
        assert!(!said.contains("secret"), "{said}");
    }
    assert_eq!((files(&den.path("")), files(&den.path("full"))), (vec!["full".to_owned()], vec!["x".to_owned()]));
}

#[test]
fn a_run_is_judged_reported_and_judged_again() {
    let den = Den::new();
    let (out, code, said) =
        verify(&den, &["sqlite", "--nemesis", "none", "--for", "2s", "--lease", "10s", "--seed", "7", "--json"]);
    assert_eq!(code, Some(0), "{out}{said}");
    assert!(said.starts_with("lockkeeper: verifying sqlite; history in verify-7\n"), "{said}");
    let report = json(&out, &said);
    let word = |field: &str| report[field].as_str().expect("a word").to_owned();
    assert_eq!([word("schema"), word("target"), word("seed")], ["lockkeeper.verify/1", "sqlite", "7"]);
    assert_eq!(
        (&report["passed"], word("promise").as_str(), word("folder").as_str()),
        (&true.into(), "holds", "verify-7")
    );
    assert!(word("repeat").starts_with("lockkeeper verify sqlite --nemesis none --for 2s --seed 7 --work mutex"));
    let answers = &report["acquisitions"];
    let of = |field: &str| answers[field].as_u64().expect("a number");
    assert!(of("acknowledged") > 0, "{answers}");
    assert_eq!(of("attempted"), of("acknowledged") + of("refused") + of("unknown"), "{answers}");
    let guards: Vec<&Value> = report["updates"].as_array().expect("updates").iter().map(|one| &one["guard"]).collect();
    assert_eq!(guards, ["bare", "deadline", "fenced-writes", "fenced"]);
    for update in report["updates"].as_array().expect("updates") {
        assert_eq!(update["lost"], 0, "{update}");
    }
    let folder = den.path("verify-7");
    let page = read(&folder.join("timeline.html"));
    assert!(
        page.contains("<title>lockkeeper verify sqlite, seed 7: passed</title>") && page.contains("class=\"hold\"")
    );
    assert_eq!(read(&folder.join("report.json")), out);

    let (again, code, said) = verify(&den, &["check", "verify-7", "--json"]);
    assert_eq!((code, json(&again, &said)), (Some(0), report), "the same folder gives the same judgement");
    let (shown, code, _) = verify(&den, &["check", "verify-7"]);
    assert_eq!(code, Some(0));
    assert!(shown.starts_with("sqlite under none for 2s, seed 7\n") && shown.contains("\npassed: of "), "{shown}");
    assert_eq!(read(&folder.join("timeline.html")), page);

    // Somebody's writes are taken out of the evidence: acknowledged, and not there.
    let registers = folder.join("registers.jsonl");
    let fewer: String = read(&registers)
        .lines()
        .filter(|line| !line.contains("\"write\""))
        .fold(String::new(), |all, line| all + line + "\n");
    std::fs::write(&registers, fewer).expect("a file");
    let (shown, code, said) = verify(&den, &["check", "verify-7"]);
    assert_eq!(code, Some(1), "{shown}{said}");
    assert!(shown.contains("\nFAILED  ") && shown.contains("\nFAILED: of "), "{shown}");
    std::fs::write(&registers, "{}\n").expect("a file");
    let (shown, code, said) = verify(&den, &["check", "verify-7"]);
    assert_eq!((code, shown.as_str()), (Some(64), ""), "evidence that was damaged is none: {said}");
    assert!(said.contains("registers.jsonl"), "{said}");
}

#[test]
fn a_killed_holder_costs_nothing_that_is_fenced() {
    let den = Den::new();
    let args = ["sqlite", "--nemesis", "kill-holder", "--for", "5s", "--lease", "500ms", "--report", "out", "--json"];
    let (out, code, said) = verify(&den, &args);
    let report = json(&out, &said);
    assert!(report["figures"]["faults"].as_u64().expect("a number") > 0, "somebody was killed: {report}");
    safe(&report, code);
}

#[test]
fn without_a_lock_updates_are_lost() {
    let den = Den::new();
    let (out, _, said) =
        verify(&den, &["sqlite", "--work", "nothing", "--nemesis", "none", "--for", "2s", "--report", "out", "--json"]);
    let report = json(&out, &said);
    let bare = &report["updates"][0];
    let (lost, of) = (bare["lost"].as_u64().expect("a number"), bare["acknowledged"].as_u64().expect("a number"));
    assert!(of > 50 && lost * 20 > of, "the registers can lose: {lost} of {of}");
}

#[test]
fn what_there_is_to_start_is_listed() {
    let den = Den::new();
    let (shown, code, _) = verify(&den, &["targets"]);
    assert_eq!(code, Some(0));
    assert!(
        shown.starts_with("sqlite: a SQLite file") && shown.contains("\n  --nemesis kill-worker,kill-holder,"),
        "{shown}"
    );
    let (out, _, said) = verify(&den, &["targets", "--json"]);
    let listed = json(&out, &said);
    assert_eq!(listed["schema"], "lockkeeper.verify-targets/1");
    let sqlite = &listed["targets"][0];
    assert_eq!((&sqlite["target"], &sqlite["durable"]), (&"sqlite".into(), &true.into()));
    let refused = sqlite["cannot"].as_array().expect("a list").iter().find(|one| one["nemesis"] == "kill-store");
    assert!(refused.expect("a file has no server")["why"].as_str().expect("why").contains("it is a file"), "{sqlite}");
}

#[test]
fn a_killed_run_leaves_no_process() {
    let den = Den::new();
    let mut command = den.lockkeeper();
    command.env_remove("LOCKKEEPER_STORE").args(["verify", "sqlite", "--nemesis", "none", "--for", "50s", "--report"]);
    command.arg(den.path("out"));
    let run = start(&mut command);
    let here = format!("{}", den.path("out").display());
    let workers = || super::support::lines_of(|line| line.contains("__verify-worker") && line.contains(&here));
    super::support::until("the workers work", || workers().len() == 4);
    run.signal(rustix::process::Signal::KILL);
    super::support::until("the workers are gone", || workers().is_empty());
}

#[test]
fn a_redis_that_it_starts_is_killed_and_the_fence_holds() {
    let (den, true) = (Den::new(), asked_for()) else { return };
    let args = ["redis", "--nemesis", "kill-store", "--for", "5s", "--lease", "500ms", "--report", "out", "--json"];
    let (out, code, said) = verify(&den, &args);
    let report = json(&out, &said);
    assert!(report["figures"]["faults"].as_u64().expect("a number") > 0, "the server was killed: {report}");
    safe(&report, code);
}

#[test]
fn a_password_goes_to_the_workers_and_nowhere_else() {
    let (den, Some(server)) = (Den::new(), server("redis-acl")) else { return };
    let mut command = den.lockkeeper();
    command.env_remove("LOCKKEEPER_STORE").env("LOCKKEEPER_PASSWORD", PASSWORD);
    command.args(["verify", &url(&server, "keeper"), "--nemesis", "none", "--for", "2s", "--report"]);
    command.arg(den.path("out"));
    let mut run = start(&mut command);
    let here = format!("{}", den.path("out").display());
    let workers = || super::support::lines_of(|line| line.contains("__verify-worker") && line.contains(&here));
    super::support::until("the workers work", || workers().len() == 4);
    for line in workers() {
        assert!(!line.contains(PASSWORD), "the list of processes is for everybody");
    }
    let said = Said::of(&mut run);
    assert!(said.next().starts_with("redis://keeper@127.0.0.1:"));
    let done = run.end();
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert!(!text(&done.stderr).contains(PASSWORD));
    for name in files(&den.path("out")).iter().filter(|name| name.contains('.')) {
        assert!(!read(&den.path("out").join(name)).contains(PASSWORD), "{name}");
    }
    // One that is wrong is told as one.
    let mut wrong = den.lockkeeper();
    wrong.env_remove("LOCKKEEPER_STORE").env("LOCKKEEPER_PASSWORD", "not-it");
    let done = output(wrong.args(["verify", &url(&server, "keeper"), "--for", "1s", "--report", "wrong"]));
    assert_eq!(done.status.code(), Some(69), "{}", text(&done.stderr));
}
