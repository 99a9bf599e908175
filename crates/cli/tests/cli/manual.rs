//! Completions and manual pages are there for every command.

use super::support::{Den, output, start, text};

const COMMANDS: [&str; 16] = [
    "run",
    "elect",
    "once",
    "limit",
    "counter",
    "cell",
    "ls",
    "show",
    "watch",
    "doctor",
    "verify",
    "config",
    "break",
    "completions",
    "man",
    "help",
];

/// What a command printed; read while it prints, since it is more than a pipe holds.
fn printed(den: &Den, args: &[&str]) -> String {
    let mut started = start(den.lockkeeper().args(args));
    let out = std::io::read_to_string(started.child().stdout.take().expect("a pipe")).expect("text");
    let done = started.end();
    assert!(done.status.success(), "{}", text(&done.stderr));
    out
}

#[test]
fn completions_know_every_command() {
    let den = Den::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = printed(&den, &["completions", shell]);
        for command in COMMANDS {
            assert!(script.contains(command), "{command} in {shell}");
        }
        assert!(
            script.contains("busy-exit") && !script.contains("__gate") && !script.contains("__verify-worker"),
            "{shell}"
        );
    }
    assert_eq!(output(den.lockkeeper().args(["completions", "csh"])).status.code(), Some(64));
}

#[test]
fn bash_reads_its_completions() {
    let den = Den::new();
    std::fs::write(den.path("script"), printed(&den, &["completions", "bash"])).expect("a file");
    let mut bash = std::process::Command::new("bash");
    let done = output(bash.args(["-n", "script"]).current_dir(den.path("")).stderr(std::process::Stdio::piped()));
    assert!(done.status.success(), "{}", text(&done.stderr));
}

#[test]
fn manual_pages_know_every_command() {
    let den = Den::new();
    let page = printed(&den, &["man"]);
    assert!(page.contains(".TH lockkeeper 1"), "{page}");
    for command in COMMANDS {
        assert!(page.contains(&format!("lockkeeper\\-{command}(1)")), "{command} in\n{page}");
    }
    let help = text(&output(den.lockkeeper().arg("--help")).stdout);
    for command in COMMANDS {
        assert!(help.contains(&format!("\n  {command} ")), "{command} in\n{help}");
    }
    for command in COMMANDS.into_iter().filter(|command| *command != "help") {
        let page = printed(&den, &["man", command]);
        assert!(page.contains(&format!(".TH lockkeeper-{command} 1")), "{page}");
        assert!(page.contains("\\-\\-store"), "{page}");
    }
    assert!(printed(&den, &["man", "run"]).contains("\\-\\-permits"));
    assert_eq!(output(den.lockkeeper().args(["man", "nothing"])).status.code(), Some(64));
}
