//! What the tests share: a place with a store of its own, processes that do not outlive the test, and patience
//! with a limit.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Longer than anything takes on a busy machine; a test that runs into it has failed.
pub const LIMIT: Duration = Duration::from_secs(60);

/// A folder with a store in it, removed at the end.
pub struct Den {
    folder: PathBuf,
}

impl Den {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // In memory where there is such a place: what is tested here are processes and times, not the disk's moods.
        let memory = PathBuf::from("/dev/shm");
        let parent = if memory.is_dir() { memory } else { std::env::temp_dir() };
        let folder = parent.join(format!("lockkeeper-cli-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        Self { folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub fn store(&self) -> String {
        format!("sqlite:{}", self.path("locks.db").display())
    }

    /// The program, with the store set and nothing else of ours in its environment.
    pub fn lockkeeper(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lockkeeper"));
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("LOCKKEEPER_")) {
            command.env_remove(name);
        }
        command.env("LOCKKEEPER_STORE", self.store()).current_dir(&self.folder);
        command.env("XDG_CONFIG_HOME", self.path("config")).env("XDG_RUNTIME_DIR", &self.folder);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// `lockkeeper run` with these arguments.
    pub fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = self.lockkeeper();
        command.arg("run").args(args);
        command
    }

    /// Starts a holder of `name` that runs `script`, and returns when the script has made the file `in`.
    pub fn holder(&self, name: &str, flags: &[&str], script: &str) -> Started {
        let mark = self.path(&format!("in-{name}"));
        let _ = std::fs::remove_file(&mark);
        let script = format!("echo $$ > in-{name}.new; mv in-{name}.new in-{name}; {script}");
        let mut command = self.run([name]);
        let holder = start(command.args(flags).args(["--", "sh", "-c", &script]));
        until("the holder is in", || mark.exists());
        holder
    }

    /// The process group of the command that `holder` started.
    pub fn group(&self, name: &str) -> Pid {
        let text = std::fs::read_to_string(self.path(&format!("in-{name}"))).expect("the holder's mark");
        Pid::from_raw(text.trim().parse().expect("a process id")).expect("a process id")
    }

    /// What `show --json` says.
    pub fn show(&self, name: &str) -> serde_json::Value {
        let output = output(self.lockkeeper().args(["show", "--json", name]));
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// How many wait for `name`.
    pub fn waiting(&self, name: &str) -> usize {
        let shown = self.show(name);
        let claims = shown["claims"].as_array().expect("claims");
        claims.iter().filter(|claim| claim["state"] == "waiting").count()
    }
}

impl Drop for Den {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A process that is killed when the test is over.
pub struct Started(Option<Child>);

impl Started {
    pub fn pid(&self) -> Pid {
        Pid::from_child(self.0.as_ref().expect("it runs"))
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it runs");
    }

    pub fn child(&mut self) -> &mut Child {
        self.0.as_mut().expect("it runs")
    }

    pub fn has_ended(&mut self) -> bool {
        self.child().try_wait().expect("it is ours").is_some()
    }

    /// Waits for its end.
    pub fn end(mut self) -> Output {
        let mut child = self.0.take().expect("it runs");
        let streams = (child.stdout.take(), child.stderr.take());
        let status = ended(&mut child);
        let read = |stream: Option<Box<dyn std::io::Read>>| {
            let mut bytes = Vec::new();
            if let Some(mut stream) = stream {
                stream.read_to_end(&mut bytes).expect("a pipe");
            }
            bytes
        };
        let stdout = read(streams.0.map(|stream| Box::new(stream) as _));
        let stderr = read(streams.1.map(|stream| Box::new(stream) as _));
        Output { status, stdout, stderr }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            // A holder that is killed leaves its guard to end the command; a stopped one must be let go first.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The lines that a process prints, each waited for within the limit.
pub struct Said(std::sync::mpsc::Receiver<String>);

impl Said {
    pub fn of(started: &mut Started) -> Self {
        let out = started.child().stdout.take().expect("a pipe");
        let (tell, lines) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for line in std::io::BufRead::lines(std::io::BufReader::new(out)).map_while(Result::ok) {
                let _ = tell.send(line);
            }
        });
        Self(lines)
    }

    #[track_caller]
    pub fn next(&self) -> String {
        self.0.recv_timeout(LIMIT).expect("a line in time")
    }
}

pub fn start(command: &mut Command) -> Started {
    Started(Some(command.spawn().expect("the program starts")))
}

/// Runs to the end, which must come within the limit. For programs that say little: nobody reads meanwhile.
pub fn output(command: &mut Command) -> Output {
    start(command).end()
}

fn ended(child: &mut Child) -> ExitStatus {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("it is ours") {
            return status;
        }
        if begun.elapsed() > LIMIT {
            let _ = child.kill();
            panic!("{} did not end", child.id());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Waits until something is so.
#[track_caller]
pub fn until(what: &str, mut so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < LIMIT, "not within {LIMIT:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Those of a process group that are not dead.
pub fn alive(group: Pid) -> Vec<String> {
    let members = processes().into_iter().filter(|process| process.group == group.as_raw_pid());
    members.filter(|process| !"ZX".contains(process.state)).map(|process| process.line).collect()
}

/// The children of a process, with their command lines.
pub fn children(parent: Pid) -> Vec<(Pid, String)> {
    let found = processes().into_iter().filter(|process| process.parent == parent.as_raw_pid());
    found.map(|process| (process.pid, process.line)).collect()
}

/// The command lines of processes that are not dead, and are meant.
pub fn lines_of(meant: impl Fn(&str) -> bool) -> Vec<String> {
    let alive = processes().into_iter().filter(|process| !"ZX".contains(process.state));
    alive.map(|process| process.line).filter(|line| meant(line)).collect()
}

/// The state of a process, as `ps` shows it.
pub fn state(pid: Pid) -> Option<char> {
    process(&Path::new("/proc").join(pid.as_raw_pid().to_string())).map(|process| process.state)
}

/// Everybody of a session.
pub fn session(session: Pid) -> Vec<Pid> {
    let found = processes().into_iter().filter(|process| process.session == session.as_raw_pid());
    found.map(|process| process.pid).collect()
}

struct Process {
    pid: Pid,
    state: char,
    parent: i32,
    group: i32,
    session: i32,
    line: String,
}

fn processes() -> Vec<Process> {
    std::fs::read_dir("/proc").expect("/proc").flatten().filter_map(|entry| process(&entry.path())).collect()
}

fn process(folder: &Path) -> Option<Process> {
    let stat = std::fs::read_to_string(folder.join("stat")).ok()?;
    let pid = stat.split(' ').next()?.parse().ok().and_then(Pid::from_raw)?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse().ok();
    let line = String::from_utf8_lossy(&std::fs::read(folder.join("cmdline")).ok()?).replace('\0', " ");
    let state = fields.first()?.chars().next()?;
    Some(Process { pid, state, parent: number(1)?, group: number(2)?, session: number(3)?, line })
}

pub fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
