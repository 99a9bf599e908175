//! The bytes below a connection: TCP, or TLS over it.
//!
//! Surprise: what a server says when it does not accept our certificate comes after the handshake, in place of its first
//! answer, and what is above this layer passes it on as bare text or not at all. So it is noted down here.

use std::sync::{Arc, OnceLock};

use lockkeeper_core::access::Tls;
use lockkeeper_core::{Error, Result};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::options::Endpoint;
use crate::trouble;

/// What a connection is made of.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// What TLS had to say about the end of a connection, if it had.
pub(crate) type Said = Arc<OnceLock<Error>>;

/// Connects; `protocols` is what is offered to be spoken inside of TLS.
pub(crate) async fn connect(
    endpoint: &Endpoint,
    tls: Option<&Tls>,
    protocols: &[&str],
    said: &Said,
) -> Result<Box<dyn Stream>> {
    let unreachable = |error: std::io::Error| trouble::unreachable(endpoint, error);
    let stream = TcpStream::connect((endpoint.host.as_str(), endpoint.port)).await.map_err(unreachable)?;
    stream.set_nodelay(true).map_err(unreachable)?;
    match tls {
        None => Ok(Box::new(stream)),
        Some(tls) => over_tls(endpoint, stream, tls, protocols, said).await,
    }
}

#[cfg(not(feature = "tls"))]
async fn over_tls(_: &Endpoint, _: TcpStream, _: &Tls, _: &[&str], _: &Said) -> Result<Box<dyn Stream>> {
    use lockkeeper_core::ErrorKind;
    Err(Error::new(ErrorKind::Unsupported, "TLS is not built in")
        .with_hint("build `lockkeeper` with the feature `tls`"))
}

#[cfg(feature = "tls")]
use encrypted::over_tls;

#[cfg(feature = "tls")]
mod encrypted {
    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use tokio::io::ReadBuf;

    use super::*;

    pub(super) async fn over_tls(
        endpoint: &Endpoint,
        stream: TcpStream,
        tls: &Tls,
        protocols: &[&str],
        said: &Said,
    ) -> Result<Box<dyn Stream>> {
        match lockkeeper_tls::Connector::new(&endpoint.host, tls, protocols)?.connect(stream).await {
            Ok(stream) => Ok(Box::new(Noting { stream, endpoint: endpoint.clone(), said: said.clone() })),
            Err(error) => Err(refused(endpoint, &error).unwrap_or_else(|| trouble::unreachable(endpoint, error))),
        }
    }

    fn refused(endpoint: &Endpoint, error: &io::Error) -> Option<Error> {
        lockkeeper_tls::refused(format_args!("the etcd server at {endpoint}"), error)
    }

    /// A stream that notes down what TLS says when it breaks.
    struct Noting<S> {
        stream: S,
        endpoint: Endpoint,
        said: Said,
    }

    impl<S: Stream> Noting<S> {
        fn note(&self, error: &io::Error) {
            if let Some(refused) = refused(&self.endpoint, error) {
                let _ = self.said.set(refused);
            }
        }

        /// Writing fails when the other end has hung up; what it said before that may still be there to be read.
        fn last_words<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
            if let Poll::Ready(Err(error)) = &written {
                self.note(error);
                let mut rest = [0; 256];
                if let Poll::Ready(Err(error)) =
                    Pin::new(&mut self.stream).poll_read(context, &mut ReadBuf::new(&mut rest))
                {
                    self.note(&error);
                }
            }
            written
        }
    }

    impl<S: Stream> AsyncRead for Noting<S> {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let read = Pin::new(&mut self.stream).poll_read(context, buffer);
            if let Poll::Ready(Err(error)) = &read {
                self.note(error);
            }
            read
        }
    }

    impl<S: Stream> AsyncWrite for Noting<S> {
        fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            let written = Pin::new(&mut self.stream).poll_write(context, bytes);
            self.last_words(context, written)
        }

        fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            let flushed = Pin::new(&mut self.stream).poll_flush(context);
            self.last_words(context, flushed)
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.stream).poll_shutdown(context)
        }
    }
}
