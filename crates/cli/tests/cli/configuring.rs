//! The config file: which store is meant, and what is said if it cannot be read.

use std::process::Command;

use serde_json::{Value, json};

use super::support::{Den, output, text};

/// Writes the user's config file.
fn configure(den: &Den, content: &str) {
    std::fs::create_dir_all(den.path("config/lockkeeper")).expect("a folder");
    std::fs::write(den.path("config/lockkeeper/config.toml"), content).expect("a file");
}

/// The program without a store in its environment.
fn plain(den: &Den) -> Command {
    let mut command = den.lockkeeper();
    command.env_remove("LOCKKEEPER_STORE").env("XDG_STATE_HOME", den.path("state"));
    command
}

fn two_stores(den: &Den) -> String {
    format!(
        "default = \"one\"\n\n[store.one]\nurl = \"sqlite:{}\"\n\n[store.two]\nurl = \"sqlite:{}\"\n",
        den.path("one.db").display(),
        den.path("two.db").display()
    )
}

#[test]
fn the_file_names_stores_and_the_one_to_use() {
    let den = Den::new();
    configure(&den, &two_stores(&den));
    assert!(output(plain(&den).args(["run", "x", "--", "true"])).status.success());
    assert!(den.path("one.db").exists() && !den.path("two.db").exists());
    assert!(output(plain(&den).args(["--store", "two", "run", "x", "--", "true"])).status.success());
    assert!(den.path("two.db").exists());
    assert!(output(plain(&den).env("LOCKKEEPER_STORE", "two").args(["ls"])).status.success());
    assert!(!den.path("state").exists(), "the default store was never made");
    let done = output(plain(&den).args(["ls", "--store", "three"]));
    assert_eq!(done.status.code(), Some(64));
    let said = text(&done.stderr);
    assert!(said.starts_with("error: there is no store `three` in the config files (the flag --store asks"), "{said}");
    assert!(said.contains("hint: the config files have: one, two; "), "{said}");
}

#[test]
fn mistakes_are_told_with_file_and_line() {
    let den = Den::new();
    let file = den.path("config/lockkeeper/config.toml");
    for (content, line, what) in [
        ("default = \"one\"\n\n[store.one]\nurl = \"sqlite:/x\"\nport = 1\n", 5, "unknown field `port`"),
        ("\ndefualt = \"one\"\n", 2, "unknown field `defualt`"),
        ("[store.one]\nurl = 5\n", 2, "invalid type"),
        ("[store.one]\nurl = \"sqlite:/x\"\n[store.one\n", 3, ""),
        ("[store.one]\nurl = \"/x\"\n", 2, "the url of `one` is not one"),
    ] {
        configure(&den, content);
        let done = output(plain(&den).arg("ls"));
        assert_eq!(done.status.code(), Some(64), "{content}");
        let said = text(&done.stderr);
        assert!(said.starts_with(&format!("error: {}:{line}: {what}", file.display())), "{said}");
        assert!(said.contains("\n  hint: "), "{said}");
        // A URL asks no file.
        assert!(output(den.lockkeeper().arg("ls")).status.success());
    }
}

#[test]
fn a_password_that_no_store_wants_is_refused() {
    let den = Den::new();
    configure(&den, "[store.one]\nurl = \"sqlite:/x\"\npassword_file = \"/run/secret\"\n");
    let done = output(plain(&den).args(["ls", "--store", "one"]));
    assert_eq!(done.status.code(), Some(64));
    let said = text(&done.stderr);
    assert!(said.contains("names a `password_file`, but `sqlite:` stores have no password"), "{said}");
}

#[test]
fn json_of_config() {
    let den = Den::new();
    configure(&den, &two_stores(&den));
    let shown = |command: &mut Command| -> Value {
        let done = output(command.args(["config", "--json"]));
        assert!(done.status.success(), "{}", text(&done.stderr));
        serde_json::from_slice(&done.stdout).expect("JSON")
    };
    let own = den.path("config/lockkeeper/config.toml").display().to_string();
    let mut value = shown(&mut plain(&den));
    assert_eq!(value["files"][1]["path"], "/etc/lockkeeper/config.toml");
    value["files"][1]["found"] = json!("<bool>");
    let expected = json!({
        "schema": "lockkeeper.config/1",
        "settings": [
            { "setting": "store", "value": "one", "from": "file", "path": own },
            {
                "setting": "url", "value": format!("sqlite:{}", den.path("one.db").display()), "from": "file",
                "path": own,
            },
            { "setting": "password_file", "value": null, "from": "default", "path": null },
        ],
        "files": [{ "path": own, "found": true }, { "path": "/etc/lockkeeper/config.toml", "found": "<bool>" }],
    });
    assert_eq!(value, expected);
    let value = shown(&mut den.lockkeeper());
    let url = json!({ "setting": "url", "value": den.store(), "from": "environment", "path": null });
    assert_eq!(value["settings"][1], url);
    let value = shown(plain(&den).args(["--store", "x://u:secret@h"]));
    assert_eq!(value["settings"][1], json!({ "setting": "url", "value": "x:…", "from": "flag", "path": null }));
}

#[test]
fn config_for_people() {
    let den = Den::new();
    let done = output(plain(&den).arg("config"));
    let said = text(&done.stdout);
    assert!(said.starts_with("store = -  (the default)\nurl = sqlite:"), "{said}");
    assert!(said.contains("/state/lockkeeper/locks.db  (the default)\n"), "{said}");
    assert!(said.contains(&format!("file {}: not there\n", den.path("config/lockkeeper/config.toml").display())));
    assert!(!den.path("state").exists(), "looking makes nothing");
}
