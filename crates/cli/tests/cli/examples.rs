//! The shell examples of the tree run as they are, so that whoever copies one starts from something that works.

use std::path::Path;
use std::process::{Command, Stdio};

use super::support::{Den, output, read, text};

/// An example of the tree, with the program under test first on its path.
fn example(den: &Den, script: &str) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_lockkeeper"));
    let folder = program.parent().expect("a folder").display();
    let mut command = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(script));
    command.env("PATH", format!("{folder}:/usr/bin:/bin")).env("LOCKKEEPER_STORE", den.store());
    command.env("DEPLOY_TARGET", den.path("server"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn a_cron_job_on_two_schedules_runs_once() {
    let den = Den::new();
    let (first, second) = (output(&mut example(&den, "cron.sh")), output(&mut example(&den, "cron.sh")));
    assert!(first.status.success() && second.status.success(), "{first:?} {second:?}");
    assert!(text(&first.stdout).starts_with("report of "), "{first:?}");
    assert_eq!(text(&second.stdout), "", "it skips, although the first one is over: at least 30 s");
}

#[test]
fn a_deploy_hands_its_token_on() {
    let den = Den::new();
    for version in ["1.1", "1.2"] {
        let deploy = output(example(&den, "guarded-deploy.sh").arg(version));
        assert!(deploy.status.success(), "{deploy:?}");
        assert_eq!(read(&den.path("server/program")).trim(), version);
    }
    let mut late = example(&den, "guarded-deploy.sh");
    let late = output(late.args(["1.0", "under-the-lock"]).env("LOCKKEEPER_TOKEN", "5"));
    assert!(!late.status.success() && text(&late.stderr).contains("refuses 5"), "{late:?}");
    assert_eq!(read(&den.path("server/program")).trim(), "1.2");
}
