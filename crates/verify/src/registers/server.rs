//! The registers as a server on a Unix socket, in the process that started the run.
//!
//! Surprise: it has a thread of its own, so that neither the watching nor the hurting can slow it down. A connection that
//! ends is no error: its worker was killed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use lockkeeper_rig::Trouble;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::oneshot;

use crate::history::write::{Lines, REGISTERS, now};
use crate::history::{Life, Register};

use super::table::{Table, Tally};
use super::wire::{Answer, Ask, LINE_BYTES, Request, line, within_reach};

/// The registers of a run. Dropped, they are gone, and so is their socket.
#[derive(Debug)]
pub struct Registers {
    desk: Arc<Mutex<Desk>>,
    socket: PathBuf,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The table, and the book in which its steps are written in the order in which it does them.
#[derive(Debug)]
struct Desk {
    table: Table,
    book: Lines,
    trouble: Option<Trouble>,
}

impl Registers {
    /// Opens them: their socket and their book are files in this folder.
    pub fn open(folder: &Path) -> Result<Self, Trouble> {
        let book = Lines::begin(&folder.join(REGISTERS))?;
        let socket = folder.join("registers.sock");
        let cannot = |error: io::Error| Trouble::new(format!("the registers cannot be opened: {error}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(cannot)?;
        let desk = Arc::new(Mutex::new(Desk { table: Table::default(), book, trouble: None }));
        let listener = {
            let _inside = runtime.enter();
            let (path, _folder) = within_reach(&socket).map_err(cannot)?;
            UnixListener::bind(path).map_err(cannot)?
        };
        let (stop, stopped) = oneshot::channel();
        let served = desk.clone();
        let work = move || {
            runtime.block_on(async {
                tokio::select! {
                    () = serve(listener, served) => {}
                    _ = stopped => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name("registers".to_owned()).spawn(work).map_err(cannot)?;
        Ok(Self { desk, socket, stop: Some(stop), thread: Some(thread) })
    }

    /// Where workers find them.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// A worker that has read a register and not yet written it, or holds a lock that has none.
    pub fn holder(&self) -> Option<Life> {
        at(&self.desk).table.holder()
    }

    /// How far the run is.
    pub fn tally(&self) -> Tally {
        at(&self.desk).table.tally()
    }

    /// What keeps them from writing their book, if anything does.
    pub fn trouble(&self) -> Option<Trouble> {
        at(&self.desk).trouble.clone()
    }
}

impl Drop for Registers {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = fs::remove_file(&self.socket);
    }
}

fn at(desk: &Mutex<Desk>) -> MutexGuard<'_, Desk> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(listener: UnixListener, desk: Arc<Mutex<Desk>>) {
    for connection in 0.. {
        match listener.accept().await {
            Ok((stream, _)) => {
                let desk = desk.clone();
                tokio::spawn(async move {
                    let _ = attend(stream, connection, &desk).await; // an end however it came
                    at(&desk).table.forget(connection);
                });
            }
            Err(error) => {
                at(&desk).trouble.get_or_insert(Trouble::new(format!("the registers take nobody in: {error}")));
                return;
            }
        }
    }
}

/// One connection, until its worker ends it or is killed.
async fn attend(stream: UnixStream, connection: u64, desk: &Mutex<Desk>) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut text = String::new();
    let mut who = None;
    loop {
        text.clear();
        if (&mut stream).take(LINE_BYTES).read_line(&mut text).await? == 0 {
            return Ok(());
        }
        match (serde_json::from_str(&text)?, who) {
            (Request::Hello(life), None) => who = Some(life),
            (Request::Ask(ask), Some(life)) => {
                let answer = at(desk).step(connection, life, ask);
                stream.get_mut().write_all(&line(&answer)?).await?;
            }
            (Request::Inside, Some(life)) => at(desk).table.inside(connection, life),
            (Request::Tell { asked, held }, Some(_)) => at(desk).table.tell(connection, asked, held),
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

impl Desk {
    fn step(&mut self, connection: u64, life: Life, ask: Ask) -> Answer {
        let answer = self.table.step(connection, life, &ask);
        let entry = Register {
            at: now(),
            lock: ask.lock,
            guard: ask.guard,
            life,
            op: ask.op,
            step: ask.step,
            shared: ask.shared,
            token: ask.token.map(|token| token.to_string()),
            value: answer.value,
            answer: answer.answer,
        };
        if let Err(trouble) = self.book.write(&entry) {
            self.trouble.get_or_insert(trouble);
        }
        answer
    }
}
