//! The bytes below a connection: TCP, or TLS over it.

use std::io;

use lockkeeper_core::access::Tls;
use lockkeeper_core::{Error, ErrorKind, Result};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::options::Endpoint;
use crate::trouble;

/// What a connection is made of.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

pub(crate) async fn connect(endpoint: &Endpoint, tls: Option<&Tls>) -> Result<Box<dyn Stream>> {
    let unreachable = |error: io::Error| trouble::unreachable(endpoint, error);
    let stream = TcpStream::connect((endpoint.host.as_str(), endpoint.port)).await.map_err(unreachable)?;
    stream.set_nodelay(true).map_err(unreachable)?;
    match tls {
        None => Ok(Box::new(stream)),
        Some(tls) => over_tls(endpoint, stream, tls).await,
    }
}

async fn over_tls(_: &Endpoint, _: TcpStream, _: &Tls) -> Result<Box<dyn Stream>> {
    Err(Error::new(ErrorKind::Unsupported, "TLS is not built in")
        .with_hint("build `lockkeeper` with the feature `tls`"))
}
