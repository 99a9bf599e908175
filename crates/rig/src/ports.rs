//! Free loopback ports, and whose a port is.
//!
//! The surprise: a port is free only when it is picked. Two rigs can pick the same one, the second server fails to bind
//! and the first answers the second's probe. So ready means: it answers, *and* the listening socket is our process's own.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use super::{Ready, Trouble};

/// One probe is bounded by this; the waiting around it by the server's own limit.
const PROBE_TAKES: Duration = Duration::from_millis(500);

/// Ports that nobody listens on now, all different.
pub(super) fn free(count: usize) -> Result<Vec<u16>, Trouble> {
    let refused = |e| Trouble::new(format!("no free loopback port: {e}"));
    // All are bound before the first is let go, or one could come twice.
    let listeners: Vec<TcpListener> =
        (0..count).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).collect::<Result<_, _>>().map_err(refused)?;
    listeners.iter().map(|l| l.local_addr().map(|a| a.port())).collect::<Result<_, _>>().map_err(refused)
}

/// Whether what listens on the port answers as it should.
pub(super) fn answers(port: u16, ready: &Ready) -> bool {
    let contains = |heard: &[u8]| heard.windows(ready.hear.len()).any(|window| window == ready.hear);
    contains(&ask(port, ready.say, contains))
}

/// What is heard on the port after saying this: until it is enough, or the other side closes or is silent.
pub(super) fn ask(port: u16, say: &[u8], enough: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut heard = Vec::new();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let Ok(mut stream) = TcpStream::connect_timeout(&address, PROBE_TAKES) else { return heard };
    let asked = stream.set_read_timeout(Some(PROBE_TAKES)).is_ok() && stream.write_all(say).is_ok();
    let mut part = [0; 1024];
    while asked && heard.len() < 64 * 1024 {
        match stream.read(&mut part) {
            Ok(n) if n > 0 => heard.extend_from_slice(&part[..n]),
            _ => break,
        }
        if enough(&heard) {
            break;
        }
    }
    heard
}

/// Whether the process itself listens on the port.
pub(super) fn is_owned_by(port: u16, pid: u32) -> bool {
    let sockets: Vec<String> =
        ["/proc/net/tcp", "/proc/net/tcp6"].iter().flat_map(|table| listening(table, port)).collect();
    let Ok(files) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    files.flatten().filter_map(|file| std::fs::read_link(file.path()).ok()).any(|target| {
        let target = target.to_string_lossy();
        sockets.iter().any(|socket| target == *socket)
    })
}

/// Names, as `/proc/PID/fd` shows them, of the sockets listening on a port.
fn listening(table: &str, port: u16) -> Vec<String> {
    const LISTEN: &str = "0A";
    let wanted = format!(":{port:04X}");
    let text = std::fs::read_to_string(table).unwrap_or_default();
    let rows = text.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.filter(|row| row.len() > 9 && row[1].ends_with(&wanted) && row[3] == LISTEN)
        .map(|row| format!("socket:[{}]", row[9]))
        .collect()
}
