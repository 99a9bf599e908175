//! The bytes below a connection: TCP, or TLS over it.

use std::error::Error as StdError;
use std::io;

use lockkeeper_core::access::Tls;
use lockkeeper_core::{Error, Result};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::options::Endpoint;
use crate::trouble;

/// What a connection is made of.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Connects; `protocols` is what is offered to be spoken inside of TLS.
pub(crate) async fn connect(endpoint: &Endpoint, tls: Option<&Tls>, protocols: &[&str]) -> Result<Box<dyn Stream>> {
    let unreachable = |error: io::Error| trouble::unreachable(endpoint, error);
    let stream = TcpStream::connect((endpoint.host.as_str(), endpoint.port)).await.map_err(unreachable)?;
    stream.set_nodelay(true).map_err(unreachable)?;
    match tls {
        None => Ok(Box::new(stream)),
        Some(tls) => over_tls(endpoint, stream, tls, protocols).await,
    }
}

#[cfg(not(feature = "tls"))]
async fn over_tls(_: &Endpoint, _: TcpStream, _: &Tls, _: &[&str]) -> Result<Box<dyn Stream>> {
    use lockkeeper_core::ErrorKind;
    Err(Error::new(ErrorKind::Unsupported, "TLS is not built in")
        .with_hint("build `lockkeeper` with the feature `tls`"))
}

#[cfg(feature = "tls")]
async fn over_tls(endpoint: &Endpoint, stream: TcpStream, tls: &Tls, protocols: &[&str]) -> Result<Box<dyn Stream>> {
    match lockkeeper_tls::Connector::new(&endpoint.host, tls, protocols)?.connect(stream).await {
        Ok(stream) => Ok(Box::new(stream)),
        Err(error) => Err(refused(endpoint, &error).unwrap_or_else(|| trouble::unreachable(endpoint, error))),
    }
}

/// What TLS has to do with an error, if it has.
#[cfg(not(feature = "tls"))]
pub(crate) fn refused(_: &Endpoint, _: &(dyn StdError + 'static)) -> Option<Error> {
    None
}

/// What TLS has to do with an error, if it has.
#[cfg(feature = "tls")]
pub(crate) fn refused(endpoint: &Endpoint, error: &(dyn StdError + 'static)) -> Option<Error> {
    lockkeeper_tls::refused(format_args!("the etcd server at {endpoint}"), error)
}
