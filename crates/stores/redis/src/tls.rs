//! TLS, if it is built in, and what the server at an address is called in its errors.

use lockkeeper_core::access::Tls;
use lockkeeper_core::{Error, Result};
use tokio::net::TcpStream;

use crate::options::Address;
use crate::stream::Stream;

#[cfg(not(feature = "tls"))]
pub(crate) async fn over(_: &Address, _: &str, _: TcpStream, _: &Tls) -> Result<Box<dyn Stream>> {
    use lockkeeper_core::ErrorKind;
    Err(Error::new(ErrorKind::Unsupported, "TLS is not built in")
        .with_hint("build `lockkeeper` with the feature `tls`"))
}

#[cfg(feature = "tls")]
pub(crate) async fn over(address: &Address, host: &str, stream: TcpStream, tls: &Tls) -> Result<Box<dyn Stream>> {
    match lockkeeper_tls::Connector::new(host, tls, &[])?.connect(stream).await {
        Ok(stream) => Ok(Box::new(stream)),
        Err(error) => Err(told(address, &error).unwrap_or_else(|| crate::trouble::unreachable(address, error))),
    }
}

#[cfg(not(feature = "tls"))]
pub(crate) fn refused(_: &Address, _: &std::io::Error) -> Option<Error> {
    None
}

/// What the server said about us, if it did: with TLS 1.3 it says so only after the handshake, in place of its first
/// answer.
#[cfg(feature = "tls")]
pub(crate) fn refused(address: &Address, error: &std::io::Error) -> Option<Error> {
    told(address, error)
}

#[cfg(feature = "tls")]
fn told(address: &Address, error: &(dyn std::error::Error + 'static)) -> Option<Error> {
    lockkeeper_tls::refused(format_args!("the redis server at {address}"), error)
}
