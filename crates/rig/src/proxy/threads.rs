//! The threads of a proxy: one accepts, one carries, and two per connection read.
//!
//! The surprise: the server is called only when the connection is not frozen. Somebody who cannot reach a server has no
//! connection with it either.

use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle, sleep};
use std::time::Duration;
use std::{io, thread};

use super::Way;
use super::connection::What;
use super::hub::Hub;

/// A server that is stopped still takes connections, until its kernel's queue is full.
const CONNECT_TAKES: Duration = Duration::from_secs(10);
/// Out of file handles, most likely: others will be closed.
const ACCEPT_AGAIN: Duration = Duration::from_millis(20);
const READ_BYTES: usize = 64 * 1024;

/// Starts the two threads that live as long as the proxy.
pub(super) fn start(
    hub: &Arc<Hub>,
    listener: &Arc<TcpListener>,
    target: SocketAddr,
) -> io::Result<Vec<JoinHandle<()>>> {
    let (carrying, accepting, listener) = (hub.clone(), hub.clone(), listener.clone());
    let carrier = named("rig-proxy").spawn(move || carrying.carry())?;
    let acceptor = named("rig-proxy-accept").spawn(move || accept(&accepting, &listener, target))?;
    Ok(vec![carrier, acceptor])
}

fn named(name: &str) -> Builder {
    thread::Builder::new().name(name.to_string())
}

fn accept(hub: &Arc<Hub>, listener: &TcpListener, target: SocketAddr) {
    loop {
        let accepted = listener.accept();
        if hub.look(|state| state.is_closing) {
            return;
        }
        match accepted {
            Ok((client, _)) => serve(hub, Arc::new(client), target),
            Err(_) => sleep(ACCEPT_AGAIN),
        }
    }
}

fn serve(hub: &Arc<Hub>, client: Arc<TcpStream>, target: SocketAddr) {
    let _ = client.set_nodelay(true);
    let Some(number) = hub.change(|state| state.accept(client.clone())) else { return };
    let (for_client, for_server) = (hub.clone(), hub.clone());
    let readers = named("rig-proxy-client")
        .spawn(move || read(&for_client, number, Way::ToServer, &client))
        .and_then(|_| named("rig-proxy-server").spawn(move || call(&for_server, number, target)));
    if readers.is_err() {
        hub.change(|state| state.connected(number, None));
    }
}

/// Calls the server, and then reads from it.
fn call(hub: &Hub, number: u64, target: SocketAddr) {
    let go = hub.wait(None, |state| match state.open(number) {
        None => Some(false),
        Some(connection) => (!state.rules.freezes(connection)).then_some(true),
    });
    if go != Some(true) {
        return;
    }
    let server = TcpStream::connect_timeout(&target, CONNECT_TAKES).ok().map(Arc::new);
    let _ = server.as_ref().map(|server| server.set_nodelay(true));
    if hub.change(|state| state.connected(number, server.clone()))
        && let Some(server) = server
    {
        read(hub, number, Way::ToClient, &server);
    }
}

/// Reads from one side until it ends, and no faster than the other side takes it.
fn read(hub: &Hub, number: u64, way: Way, mut from: &TcpStream) {
    let mut part = vec![0; READ_BYTES];
    loop {
        let what = match from.read(&mut part) {
            Ok(0) => What::End,
            Ok(count) => What::Bytes(part[..count].to_vec()),
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(_) => What::Break,
        };
        if !hub.change(|state| state.take_in(number, way, what)) {
            return;
        }
        // A closed connection has room, too: the next read says that it is over.
        hub.wait(None, |state| state.open(number).is_none_or(|c| c.has_room(way)).then_some(()));
    }
}
