//! `doctor`: what is said of stores that are set up well, badly, or not at all.

use std::process::Command;

use lockkeeper_conformance::certificates::{Host, serve};
use lockkeeper_conformance::rig::Server;
use serde_json::{Value, json};

use super::servers::{asked_for, program, server, server_with, tell, url};
use super::support::{Den, output, text, until};

/// What `doctor --json` says, its exit code, and what it says on stderr.
fn doctor(command: &mut Command, require: &str) -> (Value, Option<i32>, String) {
    command.args(["doctor", "--json"]);
    if !require.is_empty() {
        command.args(["--require", require]);
    }
    let done = output(command);
    let said = text(&done.stdout);
    assert_eq!(said.lines().count(), 1, "one object on one line: {said}{}", text(&done.stderr));
    (serde_json::from_str(&said).expect("JSON"), done.status.code(), text(&done.stderr))
}

fn at(den: &Den, server: &Server) -> Command {
    program(den, server, "")
}

/// The levels of the findings on a topic.
fn levels(report: &Value, topic: &str) -> Vec<String> {
    let findings = report["findings"].as_array().expect("findings");
    let about = findings.iter().filter(|finding| finding["topic"] == topic);
    about.map(|finding| finding["level"].as_str().expect("a level").to_owned()).collect()
}

fn kept(report: &Value, promise: &str) -> String {
    let promises = report["promises"].as_array().expect("promises");
    let found = promises.iter().find(|promised| promised["promise"] == promise).expect("the promise");
    found["kept"].as_str().expect("an answer").to_owned()
}

/// Everything that may differ from run to run is replaced, so that names and types of all fields are compared.
fn redact(report: &mut Value) {
    report["address"] = json!("<text>");
    for fact in report["facts"].as_array_mut().expect("facts") {
        assert!(fact["value"].is_string());
        fact["value"] = json!("<text>");
    }
    for finding in report["findings"].as_array_mut().expect("findings") {
        assert!(finding["found"].is_string());
        finding["found"] = json!("<text>");
    }
}

#[test]
fn json_of_doctor() {
    let den = Den::new();
    let (mut report, code, _) = doctor(&mut den.lockkeeper(), "restart,no-danger");
    assert_eq!((code, &report["address"]), (Some(0), &json!(den.path("locks.db"))));
    redact(&mut report);
    // The order of what is good is that in which it was looked at; the file may be in memory, which is a note.
    let good =
        |topic: &str| json!({ "topic": topic, "level": "good", "found": "<text>", "means": null, "change": null });
    let findings = report["findings"].as_array_mut().expect("findings");
    findings.retain(|finding| finding["topic"] != "persistence");
    assert_eq!(report["findings"], json!([good("wake-ups"), good("trial")]));
    let facts = ["file", "free", "sync", "file system", "hand-over"];
    let facts: Vec<Value> = facts.iter().map(|topic| json!({ "topic": topic, "value": "<text>" })).collect();
    assert_eq!(report["facts"], json!(facts));
    let failover = json!({
        "promise": "failover", "kept": "no", "why": "the file is on one machine, and only there",
        "change": "use a store with a server when several machines take part",
    });
    assert_eq!(report["promises"][4], failover);
    let names: Vec<&Value> =
        report["promises"].as_array().expect("promises").iter().map(|promised| &promised["promise"]).collect();
    let all =
        ["usable", "writable-primary", "restart", "power-loss", "failover", "no-eviction", "tokens", "push", "fair"];
    assert_eq!(names, all);
    let fields: Vec<&String> = report.as_object().expect("an object").keys().collect();
    let mut expected = ["schema", "store", "address", "worst", "facts", "findings", "promises", "unmet", "trust"];
    expected.sort_unstable();
    assert_eq!(fields, expected);
    assert_eq!((&report["schema"], &report["store"]), (&json!("lockkeeper.doctor/1"), &json!("sqlite")));
    assert_eq!(report["unmet"], json!([]));
    assert!(report["trust"].as_str().expect("words").starts_with("Locks here survive a restart"));
}

#[test]
fn what_is_not_promised_fails_with_the_way_out() {
    let den = Den::new();
    let (report, code, said) = doctor(&mut den.lockkeeper(), "restart,failover");
    assert_eq!(code, Some(78));
    let why = "the file is on one machine, and only there";
    let change = "use a store with a server when several machines take part";
    assert_eq!(report["unmet"], json!([{ "require": "failover", "why": why, "change": change }]));
    assert_eq!(said, format!("error: `failover` is required and not promised: {why}\n  hint: {change}\n"));
}

#[test]
fn a_memory_of_ones_own_is_looked_over_and_found_to_exclude_nobody() {
    let den = Den::new();
    let done = output(den.lockkeeper().args(["doctor", "memory:"]).env_remove("LOCKKEEPER_STORE"));
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let said = text(&done.stdout);
    assert!(said.starts_with("memory at this process\n\ndanger: reach: "), "{said}");
    assert!(said.contains("excludes nobody\n  hint: use `sqlite:PATH`"), "{said}");
    let done = output(den.lockkeeper().args(["doctor", "memory:", "--require", "no-danger"]));
    assert_eq!(done.status.code(), Some(78));
}

#[test]
fn which_store_is_meant() {
    let den = Den::new();
    let other = format!("sqlite:{}", den.path("other.db").display());
    let done = output(den.lockkeeper().args(["doctor", &other]));
    assert!(text(&done.stdout).starts_with(&format!("sqlite at {}\n", den.path("other.db").display())));
    let done = output(den.lockkeeper().args(["doctor", &other, "--store", &den.store()]));
    assert_eq!(done.status.code(), Some(64));
    assert!(text(&done.stderr).contains("named twice"), "{}", text(&done.stderr));
    let done = output(den.lockkeeper().args(["doctor", "--require", "quorum"]));
    assert_eq!(done.status.code(), Some(64));
    assert!(text(&done.stderr).contains("power-loss"), "{}", text(&done.stderr));
    let done = output(den.lockkeeper().args(["doctor", "redis://127.0.0.1:1"]));
    assert_eq!(done.status.code(), Some(69));
    let said = text(&done.stderr);
    assert!(said.starts_with("error: the redis server at 127.0.0.1:1 cannot be reached"), "{said}");
}

#[test]
fn a_server_that_keeps_everything_is_good_enough_for_everything_but_its_loss() {
    let (den, Some(server)) = (Den::new(), server("redis-durable")) else { return };
    let all = "usable,writable-primary,restart,power-loss,no-eviction,tokens,push,fair,no-danger,no-warning";
    let (report, code, said) = doctor(&mut at(&den, &server), all);
    assert_eq!((code, said.as_str(), levels(&report, "persistence")), (Some(0), "", vec!["good".to_owned()]));
    assert_eq!(kept(&report, "failover"), "no");
    let trust = report["trust"].as_str().expect("words");
    assert!(
        trust.starts_with("Locks here survive a restart and a power loss, not the loss of its machine."),
        "{trust}"
    );
    assert_eq!(tell(&server, &["DBSIZE"]), ":0", "everything was taken away again");
}

#[test]
fn a_server_that_keeps_nothing_is_told_so() {
    let (den, Some(server)) = (Den::new(), server("redis")) else { return };
    let done = output(at(&den, &server).arg("doctor"));
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let said = text(&done.stdout);
    let parts = [
        &format!("redis at 127.0.0.1:{}\n\nserver       Redis ", server.port()),
        "\npersistence  none\n",
        "\nwarning: persistence: nothing is kept on disk\n  a restart frees every lock while its holders work on\n",
        "  hint: turn the append-only file on: `appendonly yes`",
        "\ngood: trial: a lock was taken, renewed, handed over and released\n",
        "\n\nLocks here do not survive a restart, a power loss or the loss of its machine. Use tokens and fences ",
    ];
    for part in parts {
        assert!(said.contains(part), "`{part}` in\n{said}");
    }
    let (_, code, said) = doctor(&mut at(&den, &server), "restart");
    assert_eq!(code, Some(78));
    assert!(said.starts_with("error: `restart` is required and not promised: nothing is kept on disk\n"), "{said}");
    tell(&server, &["CONFIG SET appendonly yes"]);
    let (report, code, _) = doctor(&mut at(&den, &server), "restart");
    assert_eq!((code, levels(&report, "persistence")), (Some(0), vec!["note".to_owned()]));
}

#[test]
fn an_evicted_lock_is_a_broken_lock() {
    let (den, Some(server)) = (Den::new(), server("redis")) else { return };
    tell(&server, &["CONFIG SET maxmemory-policy allkeys-lru"]);
    let (report, code, _) = doctor(&mut at(&den, &server), "no-eviction");
    assert_eq!((code, levels(&report, "eviction")), (Some(0), vec!["note".to_owned()]), "there is no limit");
    tell(&server, &["CONFIG SET maxmemory 100mb"]);
    let (report, code, said) = doctor(&mut at(&den, &server), "no-eviction,no-danger");
    assert_eq!((code, levels(&report, "eviction")), (Some(78), vec!["danger".to_owned()]));
    assert_eq!(report["findings"][0]["topic"], "eviction", "the worst comes first");
    let found = "allkeys-lru with a limit of 100.0 MiB";
    assert!(said.contains(&format!("`no-eviction` is required and not promised: {found}\n  hint: set")), "{said}");
    assert!(said.contains("`no-danger` is required"), "{said}");
}

#[test]
fn a_replica_is_the_wrong_server() {
    let (den, Some(primary), Some(replica)) = (Den::new(), server("redis"), server("redis")) else { return };
    tell(&replica, &[&format!("REPLICAOF 127.0.0.1 {}", primary.port())]);
    until("it is connected", || tell(&primary, &["INFO replication"]).contains("connected_slaves:1"));
    let (report, code, said) = doctor(&mut at(&den, &replica), "writable-primary,usable");
    assert_eq!(
        (code, levels(&report, "role"), levels(&report, "trial")),
        (Some(78), vec!["danger".to_owned()], vec!["danger".to_owned()])
    );
    let found = format!("it is a replica of 127.0.0.1:{}", primary.port());
    assert!(said.contains(&format!("`writable-primary` is required and not promised: {found}\n")), "{said}");
    assert!(report["trust"].as_str().expect("words").starts_with("Locks cannot be used here: "));
    let (report, ..) = doctor(&mut at(&den, &primary), "");
    assert_eq!(levels(&report, "replicas"), ["warning"], "nobody waits for the replica");
    tell(&primary, &["CONFIG SET min-replicas-to-write 1"]);
    let (report, ..) = doctor(&mut at(&den, &primary), "");
    assert_eq!(levels(&report, "replicas"), ["note"]);
}

#[test]
fn a_user_without_scripts_is_told_which_rights_it_lacks() {
    let (den, Some(server)) = (Den::new(), server("redis")) else { return };
    tell(
        &server,
        &["ACL SETUSER app on nopass ~lockkeeper/* ~{lockkeeper/* ~lockkeeper:clock &* +@all -@scripting -@dangerous"],
    );
    let (report, code, said) = doctor(program(&den, &server, "app").env("LOCKKEEPER_PASSWORD", "any"), "usable");
    assert_eq!((code, levels(&report, "rights")), (Some(78), vec!["danger".to_owned()]));
    assert!(said.contains("hint: `ACL SETUSER app +eval +evalsha`\n"), "{said}");
    assert_eq!(levels(&report, "unseen"), ["note"], "INFO is dangerous to Redis");
    for promise in ["restart", "power-loss", "no-eviction"] {
        assert_eq!(kept(&report, promise), "unknown");
    }
    until("what the trial left has ended", || tell(&server, &["DBSIZE"]) == ":0");
    // With what was asked for, it works; other keys are still not for it.
    tell(&server, &["ACL SETUSER app +eval +evalsha"]);
    let (report, code, _) = doctor(program(&den, &server, "app").env("LOCKKEEPER_PASSWORD", "any"), "usable,push");
    assert_eq!((code, levels(&report, "rights")), (Some(0), vec!["good".to_owned()]), "{report:#}");
    let elsewhere = format!("{}?prefix=elsewhere", url(&server, "app"));
    let (report, code, said) =
        doctor(den.lockkeeper().env("LOCKKEEPER_PASSWORD", "any").args(["--store", &elsewhere]), "usable");
    assert_eq!((code, levels(&report, "rights")), (Some(78), vec!["danger".to_owned()]));
    assert!(said.contains("`ACL SETUSER app ~elsewhere/* ~{elsewhere/* ~lockkeeper:clock`"), "{said}");
}

#[test]
fn a_default_user_without_rights_costs_the_locks_of_scripts() {
    let files = [
        ("users.acl", "user default off\nuser keeper on >swordfish-of-keeper ~* &* +@all\n"),
        ("redis.conf", "bind 127.0.0.1\nport {port}\ndir .\nsave \"\"\nappendonly yes\nappendfsync always\n"),
    ];
    let (den, Some(mut server)) = (Den::new(), server_with("redis-acl", &files)) else { return };
    let keeper = |den: &Den, server: &Server| {
        let mut command = program(den, server, "keeper");
        command.env("LOCKKEEPER_PASSWORD", "swordfish-of-keeper");
        command
    };
    let (report, code, said) = doctor(&mut keeper(&den, &server), "restart");
    // Servers from 8.6 on are repaired; either way it must be as the doctor says.
    let warned = levels(&report, "persistence").contains(&"danger".to_owned());
    assert_eq!(code, Some(if warned { 78 } else { 0 }), "{said}");
    assert_eq!(said.contains("`ACL SETUSER default off resetpass ~* &* +@all`"), warned, "{said}");

    // What a script wrote is gone after a restart, what one command wrote is there.
    let auth = "AUTH keeper swordfish-of-keeper";
    let script = "EVAL \"redis.call('SET',KEYS[1],'1') redis.call('SET',KEYS[2],'1')\" 2 one two";
    tell(&server, &[auth, "SET single 1", script]);
    server.kill().expect("it runs");
    server.restart().expect("it starts");
    assert_eq!(tell(&server, &[auth, "EXISTS single one two"]), if warned { ":1" } else { ":3" });

    // And the way out is one.
    tell(&server, &[auth, "ACL SETUSER default off resetpass ~* &* +@all", "ACL SAVE", script]);
    let (_, code, said) = doctor(&mut keeper(&den, &server), "restart,power-loss");
    assert_eq!(code, Some(0), "{said}");
    server.kill().expect("it runs");
    server.restart().expect("it starts");
    assert_eq!(tell(&server, &[auth, "EXISTS single one two"]), ":3");
}

#[test]
fn a_server_without_resp3_is_told_so() {
    let conf = "bind 127.0.0.1\nport {port}\ndir .\nsave \"\"\nrename-command HELLO \"\"\n";
    let (den, Some(server)) = (Den::new(), server_with("redis", &[("redis.conf", conf)])) else { return };
    let (report, code, _) = doctor(&mut at(&den, &server), "push");
    assert_eq!((code, levels(&report, "wake-ups")), (Some(78), vec!["danger".to_owned()]));
    let done = output(at(&den, &server).args(["ls"]));
    assert_eq!(done.status.code(), Some(64));
    assert!(text(&done.stderr).contains("has no RESP3"), "{}", text(&done.stderr));
}

#[test]
fn an_encrypted_way_is_seen() {
    let (den, true) = (Den::new(), asked_for()) else { return };
    let server = serve("redis-tls", Host::Right).expect("the server starts");
    let ca = server.folder().join("ca.pem");
    let store = format!("{}?ca={}", server.url(), ca.display());
    let (report, code, said) = doctor(den.lockkeeper().env("LOCKKEEPER_STORE", store), "usable,push");
    assert_eq!((code, levels(&report, "transport")), (Some(0), vec!["good".to_owned()]), "{said}");
    assert_eq!(report["facts"][2], json!({ "topic": "transport", "value": "TLS" }));
}

#[test]
fn a_clock_that_is_wrong_is_told() {
    let (den, Some(server)) = (Den::new(), server("redis-stepped")) else { return };
    server.step_clock("-1h").expect("it can be stepped");
    let (report, code, _) = doctor(&mut at(&den, &server), "tokens");
    assert_eq!((code, levels(&report, "clock")), (Some(0), vec!["note".to_owned()]), "{report:#}");
}

#[test]
fn what_others_have_under_our_names_is_counted() {
    let (den, Some(server)) = (Den::new(), server("redis")) else { return };
    tell(&server, &["SET lockkeeper/a theirs", "RPUSH lockkeeper/b x", "SET elsewhere 1"]);
    let (report, ..) = doctor(&mut at(&den, &server), "");
    let names = report["findings"].as_array().expect("findings").iter().find(|finding| finding["topic"] == "names");
    let names = names.expect("a finding");
    assert_eq!(
        (&names["level"], &names["found"]),
        (&json!("note"), &json!("1 strings and 1 other keys that are not ours"))
    );
    assert_eq!(tell(&server, &["DBSIZE"]), ":3", "they are left alone");
}

#[test]
fn settings_that_hurt_are_told() {
    let (den, Some(server)) = (Den::new(), server("redis")) else { return };
    tell(&server, &["CONFIG SET timeout 5", "CONFIG SET maxclients 4", "CONFIG SET busy-reply-threshold 0"]);
    // Keeps the server busy for longer than anybody should.
    tell(
        &server,
        &[
            "CONFIG SET slowlog-log-slower-than 1000",
            "EVAL \"local t=redis.call('TIME') local s=t[1]*1000000+t[2] repeat t=redis.call('TIME') until t[1]*1000000+t[2]-s>150000\" 0",
        ],
    );
    let (report, ..) = doctor(&mut at(&den, &server), "");
    assert_eq!(levels(&report, "scripts"), ["note"]);
    let slow = levels(&report, "slow commands");
    assert!(slow == ["note"] || slow == ["warning"], "at least 150 ms: {slow:?}");
    assert!(levels(&report, "clients").contains(&"note".to_owned()), "{report:#}");
}

#[test]
fn an_etcd_of_one_is_looked_over() {
    let Some(server) = server("etcd") else { return };
    let den = Den::new();
    let at = format!("etcd://127.0.0.1:{}", server.port());
    let (report, code, said) = doctor(den.lockkeeper().env("LOCKKEEPER_STORE", &at), "usable,restart,tokens,failover");
    assert_eq!((code, &report["store"]), (Some(78), &json!("etcd")), "{said}");
    assert!(
        said.starts_with("error: `failover` is required and not promised: one member\n  hint: run three"),
        "{said}"
    );
    assert_eq!((levels(&report, "trial"), kept(&report, "usable")), (vec!["good".to_owned()], "yes".to_owned()));
    let done = output(den.lockkeeper().args(["doctor", &at]).env_remove("LOCKKEEPER_STORE"));
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let said = text(&done.stdout);
    assert!(said.starts_with(&format!("etcd at 127.0.0.1:{}\n\nserver", server.port())), "{said}");
    assert!(said.contains("note: members: one member\n  locks survive its restart"), "{said}");
}
