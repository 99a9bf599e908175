//! The bytes below the protocol: TCP, TLS or a Unix socket.

use lockkeeper_core::Result;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use crate::options::Address;
use crate::trouble;

/// What a connection is made on.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Opens it.
pub(crate) async fn open(address: &Address) -> Result<Box<dyn Stream>> {
    match address {
        Address::Unix(path) => match UnixStream::connect(path).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) => Err(trouble::unreachable(address, error)),
        },
        Address::Tcp { host, port, tls } => {
            let connected = TcpStream::connect((host.as_str(), *port)).await;
            let stream = connected.map_err(|error| trouble::unreachable(address, error))?;
            // Writes are already gathered: waiting for more would only be late.
            stream.set_nodelay(true).map_err(|error| trouble::unreachable(address, error))?;
            match tls {
                None => Ok(Box::new(stream)),
                Some(tls) => crate::tls::over(address, host, stream, tls).await,
            }
        }
    }
}
