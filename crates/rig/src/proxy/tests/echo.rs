//! A server of lines: says each line back, and remembers it.
//!
//! The surprise: it remembers a line before it answers it, so who has the answer finds the line.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Instant;

use super::SOON;

/// The server. It ends with the program.
pub(super) struct Echo {
    pub(super) port: u16,
    heard: Arc<(Mutex<Vec<String>>, Condvar)>,
}

impl Echo {
    pub(super) fn start() -> Echo {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
        let for_clients = heard.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let heard = for_clients.clone();
                thread::spawn(move || answer(&stream, &heard));
            }
        });
        Echo { port, heard }
    }

    /// All lines so far, in order.
    pub(super) fn heard(&self) -> Vec<String> {
        self.heard.0.lock().unwrap().clone()
    }

    /// Waits until it has heard so many lines; fails when it does not.
    pub(super) fn hears(&self, count: usize) -> Vec<String> {
        let began = Instant::now();
        let mut heard = self.heard.0.lock().unwrap();
        while heard.len() < count {
            let left = SOON.saturating_sub(began.elapsed());
            assert!(!left.is_zero(), "heard only {heard:?}");
            heard = self.heard.1.wait_timeout(heard, left).unwrap().0;
        }
        heard.clone()
    }
}

fn answer(mut stream: &TcpStream, heard: &(Mutex<Vec<String>>, Condvar)) {
    let _ = stream.set_nodelay(true);
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { return };
        heard.0.lock().unwrap().push(line.trim_end().to_string());
        heard.1.notify_all();
        if stream.write_all(format!("{}\r\n", line.trim_end()).as_bytes()).is_err() {
            return;
        }
    }
}
