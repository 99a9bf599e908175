//! A running server: started from a [`Spec`], ready when handed over, gone when dropped.
//!
//! The surprise: a start that fails because somebody else took the port is tried again with other ports; any other
//! failure carries the tail of the server's own log.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::identity::poll;
use super::spec::Filling;
use super::{Entry, Identity, Member, Process, Spec, Trouble, ports, program_path};

/// The file that a server's stepped clock is read from.
pub(super) const CLOCK: &str = "clock";

const LOG: &str = "server.log";
const LOG_TAIL_LINES: usize = 20;
const PREPARE_TAKES: Duration = Duration::from_secs(60);
const STOP_TAKES: Duration = Duration::from_secs(10);
const TRIES: usize = 3;

/// A server of our own, on ports of its own, in a folder of its own.
///
/// Use this in tests that hurt their server; use [`shared`](super::shared()) in tests that only need one.
#[derive(Debug)]
pub struct Server {
    spec: &'static Spec,
    program: PathBuf,
    folder: PathBuf,
    filling: Filling,
    process: Option<Process>,
}

impl Server {
    /// Starts a server by its name in the table, in a temporary folder.
    pub fn named(name: &str) -> Result<Server, Trouble> {
        Server::named_with(name, &[])
    }

    /// The same, with files of the caller's own (path in its folder, and text), such as certificates.
    pub fn named_with(name: &str, files: &[(&str, &str)]) -> Result<Server, Trouble> {
        Server::start_with(Spec::named(name)?, &std::env::temp_dir(), files)
    }

    /// Starts a server in a fresh folder under `parent` and waits until it is ready.
    pub fn start(spec: &'static Spec, parent: &Path) -> Result<Server, Trouble> {
        Server::start_with(spec, parent, &[])
    }

    fn start_with(spec: &'static Spec, parent: &Path, files: &[(&str, &str)]) -> Result<Server, Trouble> {
        if !spec.members.is_empty() {
            return Err(Trouble::new(format!("`{}` is more than one server", spec.name))
                .hint(format!("`Cluster::named(\"{}\")` starts them", spec.name)));
        }
        let started = Server::start_all(spec, parent, files)?.pop();
        started.ok_or_else(|| Trouble::new(format!("`{}` did not start", spec.name)))
    }

    /// Starts the server, or all members of the cluster at once, and waits until all are ready.
    pub(super) fn start_all(
        spec: &'static Spec,
        parent: &Path,
        files: &[(&str, &str)],
    ) -> Result<Vec<Server>, Trouble> {
        let mut last = None;
        for _ in 0..TRIES {
            let mut servers = Server::lay_out(spec, parent)?;
            let spawned = servers.iter_mut().try_for_each(|server| {
                server.prepare(files)?;
                server.spawn()
            });
            match spawned.and_then(|()| wait_ready(&mut servers.iter_mut().collect::<Vec<_>>())) {
                Ok(()) => return Ok(servers),
                Err(trouble) if servers.iter_mut().any(Server::lost_its_port) => last = Some(trouble),
                Err(trouble) => return Err(trouble),
            }
        }
        Err(last.unwrap_or_else(|| Trouble::new(format!("`{}` did not start", spec.name))))
    }

    /// Ports and folders for all that is to start. What is dropped before it starts takes its folder along.
    fn lay_out(spec: &'static Spec, parent: &Path) -> Result<Vec<Server>, Trouble> {
        let mut servers = Vec::new();
        let ports = spec.free_ports()?;
        for (member, spec) in spec.processes().iter().enumerate() {
            let (program, folder) = (spec.find()?, fresh_folder(parent, spec.name)?);
            let filling = spec.filling(&folder, member, &ports);
            servers.push(Server { spec, program, folder, filling, process: None });
        }
        Ok(servers)
    }

    /// Where a client connects.
    pub fn url(&self) -> String {
        self.filled(self.spec.url)
    }

    /// A text with this server's values in it.
    pub(super) fn filled(&self, text: &str) -> String {
        self.filling.fill(text)
    }

    /// Its first port.
    pub fn port(&self) -> u16 {
        self.filling.own_ports()[0]
    }

    /// All its ports, in the order of their numbers in the table.
    pub fn ports(&self) -> &[u16] {
        self.filling.own_ports()
    }

    /// Its folder, removed when it stops.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its process, or nothing after [`kill`](Server::kill).
    pub fn identity(&self) -> Option<Identity> {
        self.process.as_ref().map(Process::identity)
    }

    /// The last lines it logged.
    pub fn log_tail(&self) -> String {
        let log = fs::read(self.folder.join(LOG)).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n")
    }

    /// Stops it (SIGSTOP): it keeps its connections and answers nobody.
    pub fn pause(&mut self) -> Result<(), Trouble> {
        self.running()?.pause()
    }

    /// Lets it go on (SIGCONT).
    pub fn resume(&mut self) -> Result<(), Trouble> {
        self.running()?.resume()
    }

    /// `kill -9`. Its folder stays, for [`restart`](Server::restart).
    pub fn kill(&mut self) -> Result<(), Trouble> {
        self.running()?.kill()?;
        self.clear_leftovers();
        self.process = None;
        Ok(())
    }

    /// Starts it again after [`kill`](Server::kill), on the same ports and in the same folder.
    ///
    /// A member of a cluster is ready when the cluster is: with too many others down, use
    /// [`Cluster::restart`](super::Cluster::restart).
    pub fn restart(&mut self) -> Result<(), Trouble> {
        if self.process.is_some() {
            return Err(Trouble::new(format!("{} still runs", self.title())).hint("call `kill` first"));
        }
        self.spawn()?;
        wait_ready(&mut [self])
    }

    /// Sets its wall clock off from the real one, as in `+40s` or `-1h`, at once. Each step counts from the real time.
    pub fn step_clock(&self, offset: &str) -> Result<(), Trouble> {
        let number = offset.strip_prefix(['+', '-']).unwrap_or_default().trim_end_matches(['s', 'm', 'h', 'd']);
        if number.contains(|c: char| !c.is_ascii_digit() && c != '.') || number.parse::<f64>().is_err() {
            return Err(Trouble::new(format!("`{offset}` is no step of a clock")).hint("one like `+40s` or `-1h`"));
        }
        let (path, fresh) = (self.folder.join(CLOCK), self.folder.join("clock.new"));
        if !path.is_file() {
            return Err(Trouble::new(format!("the clock of `{}` cannot be stepped", self.spec.name))
                .hint("start `redis-stepped`"));
        }
        // In one move: the server reads the file whenever it looks at its clock, and must not find half of it.
        let written = fs::write(&fresh, format!("{offset}\n")).and_then(|()| fs::rename(&fresh, &path));
        written.map_err(|e| Trouble::new(format!("cannot write {}: {e}", path.display())))
    }

    /// Ends it cleanly, by force if it takes too long, and removes its folder.
    pub fn stop(mut self) -> Result<(), Trouble> {
        self.end();
        match self.process.as_mut().map(Process::ended) {
            Some(None) => Err(Trouble::new(format!("{} cannot be stopped", self.title()))),
            _ => Ok(()),
        }
    }

    /// What others need to connect to it, while we own it.
    pub fn entry(&self) -> Result<Entry, Trouble> {
        Ok(Entry {
            name: self.spec.name.to_string(),
            url: self.url(),
            members: vec![self.member()?],
            version: self.spec.installed_version().unwrap_or_default(),
        })
    }

    /// What others need to find and stop it.
    pub(super) fn member(&self) -> Result<Member, Trouble> {
        let identity = self.identity().ok_or_else(|| Trouble::new(format!("{} does not run", self.title())))?;
        Ok(Member { port: self.port(), identity, folder: self.folder.clone() })
    }

    /// Lets it live on without us.
    pub(super) fn release(mut self) {
        self.process.take().map(Process::release);
        self.folder = PathBuf::new(); // so that the drop leaves it alone
    }

    /// Its name for people, and which of a cluster it is.
    fn title(&self) -> String {
        match self.filling.is_alone() {
            true => format!("`{}`", self.spec.name),
            false => format!("`{}` (member {})", self.spec.name, self.filling.member),
        }
    }

    /// Removes what its library left outside of its folder.
    fn clear_leftovers(&mut self) {
        if let Some(process) = &mut self.process
            && process.ended().is_some()
        {
            for path in leftovers(self.spec, process.pid()) {
                let _ = fs::remove_file(path);
            }
        }
    }

    fn running(&mut self) -> Result<&mut Process, Trouble> {
        let title = self.title();
        self.process.as_mut().ok_or_else(|| Trouble::new(format!("{title} does not run")).hint("call `restart` first"))
    }

    fn prepare(&self, files: &[(&str, &str)]) -> Result<(), Trouble> {
        for (path, text) in self.spec.files.iter().chain(files) {
            let path = self.folder.join(path);
            let written = fs::create_dir_all(path.parent().unwrap_or(&self.folder));
            let written = written.and_then(|()| fs::write(&path, self.filling.fill(text)));
            written.map_err(|e| Trouble::new(format!("cannot write {}: {e}", path.display())))?;
        }
        for command in self.spec.prepare {
            let words = self.filling.fill_all(command);
            let (program, args) =
                words.split_first().ok_or_else(|| Trouble::new("an empty command to prepare with"))?;
            let program = program_path(program).unwrap_or_else(|| PathBuf::from(program));
            let mut process = Process::spawn(self.dressed(Command::new(program).args(args).stdin(Stdio::null()))?)?;
            if !process.wait(PREPARE_TAKES)?.success() {
                return Err(self.failed(&format!("`{}` failed", words.join(" "))));
            }
        }
        Ok(())
    }

    /// Folder, environment and log, the same for the server and for what prepares it.
    fn dressed<'a>(&self, command: &'a mut Command) -> Result<&'a mut Command, Trouble> {
        let path = self.folder.join(LOG);
        let log = File::options().create(true).append(true).open(&path);
        let log = log.and_then(|log| Ok((log.try_clone()?, log)));
        let (out, err) = log.map_err(|e| Trouble::new(format!("cannot write {}: {e}", path.display())))?;
        let env = self.spec.env.iter().map(|(key, value)| (key, self.filling.fill(value)));
        Ok(command.current_dir(&self.folder).envs(env).stdout(out).stderr(err))
    }

    pub(super) fn spawn(&mut self) -> Result<(), Trouble> {
        let args = self.filling.fill_all(self.spec.args);
        let dress = |command: &mut Command| self.dressed(command).map(|_| ());
        let belongings = |pid| std::iter::once(self.folder.clone()).chain(leftovers(self.spec, pid)).collect();
        self.process = Some(Process::serve(&self.program, &args, self.spec.stop, belongings, dress)?);
        Ok(())
    }

    /// Whether it answers, and not somebody else in its place.
    fn is_ready(&self) -> bool {
        let Some(identity) = self.identity() else { return false };
        ports::answers(self.port(), &self.spec.ready) && ports::is_owned_by(self.port(), identity.pid)
    }

    fn failed(&self, what: &str) -> Trouble {
        let tail = self.log_tail();
        let tail = if tail.is_empty() { "(it logged nothing)" } else { &tail };
        Trouble::new(format!("{what}; its log ends with:\n    {}", tail.replace('\n', "\n    ")))
    }

    /// Whether somebody else listens where this server was to.
    fn lost_its_port(&mut self) -> bool {
        self.process.as_mut().is_some_and(|process| process.ended().is_some())
            && self.filling.own_ports().iter().any(|port| std::net::TcpListener::bind(("127.0.0.1", *port)).is_err())
    }

    fn end(&mut self) {
        if let Some(process) = &mut self.process {
            process.signal(self.spec.stop);
            process.signal(super::Signal::CONT); // a stopped process takes no other signal
            if process.wait(STOP_TAKES).is_err() {
                let _ = process.kill();
            }
        }
        self.clear_leftovers();
        if self.folder != OsStr::new("") {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// Waits until all of these are ready; the first that ends instead ends the waiting.
pub(super) fn wait_ready(servers: &mut [&mut Server]) -> Result<(), Trouble> {
    let began = Instant::now();
    let at_most = servers.iter().map(|server| server.spec.starts_within).max().unwrap_or_default();
    let mut waiting: Vec<usize> = (0..servers.len()).collect();
    let ended = poll(at_most, || {
        for (n, server) in servers.iter_mut().enumerate() {
            if let Some(status) = server.process.as_mut().and_then(Process::ended) {
                return Some(Some((n, status)));
            }
        }
        waiting.retain(|n| !servers[*n].is_ready());
        waiting.is_empty().then_some(None)
    });
    match (ended, waiting.first()) {
        (Some(Some((n, status))), _) => {
            Err(servers[n].failed(&format!("{} ended instead of starting ({status})", servers[n].title())))
        }
        (None, Some(n)) => {
            Err(servers[*n].failed(&format!("{} was not ready within {:?}", servers[*n].title(), began.elapsed())))
        }
        _ => Ok(()),
    }
}

/// What a server with this pid leaves outside of its folder.
fn leftovers(spec: &Spec, pid: u32) -> Vec<PathBuf> {
    spec.library.iter().flat_map(|library| library.left_by(pid)).collect()
}

/// A folder nobody else has. Others may enter it: some servers change to a user of their own.
fn fresh_folder(parent: &Path, name: &str) -> Result<PathBuf, Trouble> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder = parent.join(format!("lockkeeper-{name}-{}-{now:x}-{next}", std::process::id()));
    let made = fs::create_dir_all(parent).and_then(|()| fs::create_dir(&folder));
    made.map_err(|e| Trouble::new(format!("cannot make {}: {e}", folder.display())))?;
    Ok(folder)
}
