//! How to start a server, as data.
//!
//! The surprise: `{dir}`, `{port}`, `{port2}`…, `{library}` are filled in wherever they stand (arguments, files,
//! environment, preparation, address), and as many free ports are taken as are named. Servers that start together also
//! have their own number in `{member}`, from 0, and each other's ports in `{port@0}`, `{port2@1}`….

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{Process, Signal, Trouble, ports};

const VERSION_TAKES: Duration = Duration::from_secs(10);

/// One server program and everything the rig must know about it.
#[derive(Debug)]
pub struct Spec {
    /// The name tests ask for.
    pub name: &'static str,
    /// The server of which this is another way to run it. Nothing for a server that tests share.
    pub variant_of: Option<&'static str>,
    /// The program, looked up in `PATH` and the folders for administrators.
    pub program: &'static str,
    /// Its arguments. It must stay in the foreground and listen on 127.0.0.1 only.
    pub args: &'static [&'static str],
    /// Files written into its folder first: path and content.
    pub files: &'static [(&'static str, &'static str)],
    /// Its environment, added to ours.
    pub env: &'static [(&'static str, &'static str)],
    /// Commands run in its folder before its first start: program and arguments.
    pub prepare: &'static [&'static [&'static str]],
    /// How it shows that it is ready, on `{port}`.
    pub ready: Ready,
    /// What ends it cleanly.
    pub stop: Signal,
    /// How long a start may take before it is a failure; far more than it takes, for busy machines.
    pub starts_within: Duration,
    /// Where a client connects.
    pub url: &'static str,
    /// Arguments that make the program print its version.
    pub version: &'static [&'static str],
    /// The Debian package that brings it.
    pub package: &'static str,
    /// A library that its environment loads ahead of its own, as `{library}`.
    pub library: Option<Library>,
    /// Other programs that its tests use, such as its command line, and the Debian packages that bring them.
    pub beside: &'static [(&'static str, &'static str)],
    /// The servers of a cluster, which start together and are one to whoever connects; of the cluster's own fields only
    /// those that are not about a process count: names, address, version. None for a server by itself.
    pub members: &'static [Spec],
    /// Who leads the cluster.
    pub leader: Option<Leader>,
}

/// Finds out which member of a cluster leads, by its number from 0; nothing while they do not agree on one. Asks on these
/// ports, with nothing for a member that cannot answer now, and is bounded in time.
pub type Leader = fn(&[Option<u16>]) -> Option<usize>;

/// A library loaded into a server.
#[derive(Debug)]
pub struct Library {
    /// Its file, below one of the system's folders of libraries.
    pub file: &'static str,
    /// The Debian package that brings it.
    pub package: &'static str,
    /// Files outside of the server's folder that it leaves behind. `{pid}` is the server's.
    pub leaves: &'static [&'static str],
}

impl Library {
    /// Where it is, if it is installed.
    pub fn path(&self) -> Option<PathBuf> {
        library_path(self.file)
    }

    /// The files that it left when the program with this pid used it.
    pub fn left_by(&self, pid: u32) -> Vec<PathBuf> {
        self.leaves.iter().map(|path| PathBuf::from(path.replace("{pid}", &pid.to_string()))).collect()
    }
}

/// Ready is when the server, told `say`, answers with something that contains `hear`.
#[derive(Debug)]
pub struct Ready {
    /// Bytes to send after connecting; may be nothing.
    pub say: &'static [u8],
    /// Bytes that must be in the answer.
    pub hear: &'static [u8],
}

/// The values for a spec's placeholders.
#[derive(Clone, Debug)]
pub(super) struct Filling {
    dir: String,
    /// Which of those that start together it is.
    pub(super) member: usize,
    /// The ports of each of them.
    ports: Vec<Vec<u16>>,
    /// Where the library is, or nothing.
    library: String,
}

impl Spec {
    /// The entry of this name in the table.
    pub(super) fn named(name: &str) -> Result<&'static Spec, Trouble> {
        let spec = super::SERVERS.iter().find(|spec| spec.name == name);
        spec.ok_or_else(|| Trouble::new(format!("the rig has no server `{name}`")))
    }

    /// The store it belongs to, under the name the laws have for it.
    pub fn store(&self) -> &'static str {
        self.variant_of.unwrap_or(self.name)
    }

    /// Whether `cargo xtask up` starts one for all tests; of the others each test starts its own.
    pub fn is_shared(&self) -> bool {
        self.variant_of.is_none()
    }

    /// What is started: the members of a cluster, or the server itself.
    pub fn processes(&self) -> &[Spec] {
        if self.members.is_empty() { std::slice::from_ref(self) } else { self.members }
    }

    /// What is not installed of all it needs: the program or library, and its Debian package.
    pub fn missing(&self) -> Vec<(&'static str, &'static str)> {
        let programs = std::iter::once((self.program, self.package)).chain(self.beside.iter().copied());
        let programs = programs.map(|(program, package)| (program, package, program_path(program)));
        let library = self.library.as_ref().map(|library| (library.file, library.package, library.path()));
        let needed = programs.chain(library).filter(|(.., path)| path.is_none());
        let members = self.members.iter().flat_map(Spec::missing);
        needed.map(|(what, package, _)| (what, package)).chain(members).collect()
    }

    /// Where its program is, or what to type to get it and all else it needs.
    pub fn find(&self) -> Result<PathBuf, Trouble> {
        if let Some((what, package)) = self.missing().first() {
            return Err(Trouble::new(format!("`{what}` is not installed, and `{}` needs it", self.name))
                .hint(format!("`cargo xtask setup` installs it (Debian package `{package}`)")));
        }
        program_path(self.program).ok_or_else(|| Trouble::new(format!("`{}` is gone", self.program)))
    }

    /// The version of the installed program, as it prints it; nothing if it prints none.
    pub fn installed_version(&self) -> Option<String> {
        let mut command = Command::new(self.find().ok()?);
        command.args(self.version).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = Process::spawn(&mut command).ok()?;
        let mut said = String::new();
        let out = process.stdout()?;
        process.wait(VERSION_TAKES).ok()?;
        out.take(64 * 1024).read_to_string(&mut said).ok()?;
        version_in(&said)
    }

    /// How many ports its placeholders name.
    fn port_count(&self) -> usize {
        (1..).take_while(|n| *n == 1 || self.texts().any(|text| text.contains(&placeholder(*n, "")))).count()
    }

    /// Fresh ports for each of what is started; no two are the same.
    pub(super) fn free_ports(&self) -> Result<Vec<Vec<u16>>, Trouble> {
        let counts: Vec<usize> = self.processes().iter().map(Spec::port_count).collect();
        let mut free = ports::free(counts.iter().sum())?.into_iter();
        Ok(counts.iter().map(|count| free.by_ref().take(*count).collect()).collect())
    }

    /// The values for one of what is started, which has this folder.
    pub(super) fn filling(&self, dir: &Path, member: usize, ports: &[Vec<u16>]) -> Filling {
        let library = self.library.as_ref().and_then(Library::path).unwrap_or_default();
        Filling { dir: text(dir), member, ports: ports.to_vec(), library: text(&library) }
    }

    fn texts(&self) -> impl Iterator<Item = &'static str> {
        let prepare = self.prepare.iter().flat_map(|command| command.iter().copied());
        let pairs = self.files.iter().chain(self.env).flat_map(|(name, text)| [*name, *text]);
        self.args.iter().copied().chain(prepare).chain(pairs).chain([self.url])
    }
}

impl Filling {
    /// Whether it starts by itself.
    pub(super) fn is_alone(&self) -> bool {
        self.ports.len() == 1
    }

    /// Its own ports.
    pub(super) fn own_ports(&self) -> &[u16] {
        &self.ports[self.member]
    }

    pub(super) fn fill(&self, text: &str) -> String {
        let mut text = text.replace("{dir}", &self.dir).replace("{library}", &self.library);
        text = text.replace("{member}", &self.member.to_string());
        for (member, ports) in self.ports.iter().enumerate() {
            for (n, port) in ports.iter().enumerate() {
                text = text.replace(&placeholder(n + 1, &format!("@{member}")), &port.to_string());
                if member == self.member {
                    text = text.replace(&placeholder(n + 1, ""), &port.to_string());
                }
            }
        }
        text
    }

    pub(super) fn fill_all(&self, texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| self.fill(text)).collect()
    }
}

/// The first thing in a text that looks like `1.2` or `1.2.3`.
fn version_in(text: &str) -> Option<String> {
    let words = text.split(|c: char| !(c.is_ascii_digit() || c == '.')).map(|word| word.trim_matches('.'));
    words.into_iter().find(|word| word.contains('.')).map(str::to_string)
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// A port by its number, and whose it is if not the server's own.
fn placeholder(number: usize, whose: &str) -> String {
    if number == 1 { format!("{{port{whose}}}") } else { format!("{{port{number}{whose}}}") }
}

/// Looks a program up in `PATH` and in the folders that only administrators have there.
pub fn program_path(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| path.is_file());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(PathBuf::from));
    folders.map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// Looks a library up in the folders where distributions keep those of this machine's own kind.
fn library_path(file: &str) -> Option<PathBuf> {
    let debian = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let folders = [debian.as_str(), "/usr/lib64", "/usr/lib", "/usr/local/lib"];
    folders.iter().map(|folder| Path::new(folder).join(file)).find(|path| path.is_file())
}
