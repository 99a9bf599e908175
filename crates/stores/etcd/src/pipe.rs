//! One connection to one member: dialled, shaken hands on, and asked.
//!
//! Surprise: it is bound to the runtime it was made in, which drives it. When that is gone it is closed, and whoever asks
//! next makes another. Why a connection ended is told to the connection, and not to the question that is not answered
//! because of it: a server that wants a certificate of us says so after our first words.

use std::error::Error as _;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream;
use http::Uri;
use http::uri::PathAndQuery;
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use lockkeeper_core::{Error, Result};
use prost::Message;
use tokio::sync::watch;
use tonic::body::Body;
use tonic::client::Grpc;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;
use tower_service::Service;

use crate::options::{Endpoint, Options};
use crate::{trouble, wire};

/// Bytes that may be on their way on the whole connection, and of one answer: a long list must not stop the rest.
const CONNECTION_WINDOW: u32 = 4 << 20;
const STREAM_WINDOW: u32 = 1 << 20;
/// The longest answer: a line of thousands, each with the longest note.
const ANSWER_MAX: usize = 64 << 20;
/// How often a connection with something under way is tried. A server takes more than one try in 5 s for an attack.
const TRY_EVERY: Duration = Duration::from_secs(10);
const TRY_TAKES: Duration = Duration::from_secs(5);
/// There is always a timer that is due within this time. Setting one that is due before all others wakes the thread that waits
/// for them, and every question sets two; beside this one they wake nobody.
const TICK: Duration = Duration::from_millis(500);
/// How long a connection may take to say why it ended. Waited in vain when it has not, but something else went wrong.
const END_TAKES: Duration = Duration::from_millis(200);

/// The token of a user who has come in.
pub(crate) type Badge = MetadataValue<Ascii>;

/// A connection; clones share it.
#[derive(Clone)]
pub(crate) struct Pipe {
    grpc: Grpc<Sender>,
    sender: Sender,
    /// Has the server answered anything?
    answered: Arc<AtomicBool>,
    /// Why it ended, if it has.
    end: watch::Receiver<Option<Error>>,
}

impl Pipe {
    pub(crate) async fn dial(options: &Options, endpoint: &Endpoint) -> Result<Self> {
        let said = wire::Said::default();
        let stream = wire::connect(endpoint, options.tls.as_ref(), &["h2"], &said).await?;
        let broken = |error: hyper::Error| {
            let refused = said.get().cloned();
            refused.unwrap_or_else(|| trouble::unreachable(endpoint, std::io::Error::other(error)))
        };
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_connection_window_size(CONNECTION_WINDOW)
            .initial_stream_window_size(STREAM_WINDOW)
            .keep_alive_interval(TRY_EVERY)
            .keep_alive_timeout(TRY_TAKES)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(broken)?;
        let answered = Arc::new(AtomicBool::new(false));
        let (ends, end) = watch::channel(None);
        let (met, at, with_tls) = (answered.clone(), endpoint.clone(), options.tls.is_some());
        tokio::spawn(async move {
            let mut connection = pin!(connection);
            let ended = loop {
                match tokio::time::timeout(TICK, &mut connection).await {
                    Ok(ended) => break ended,
                    Err(_) => continue,
                }
            };
            if let Err(error) = &ended {
                tracing::debug!(target: "lockkeeper", %error, "a connection to etcd ended");
            }
            let hung_up = || (!met.load(Ordering::Relaxed)).then(|| trouble::hung_up(&at, with_tls));
            ends.send_replace(said.get().cloned().or_else(hung_up));
        });
        let scheme = if options.tls.is_some() { "https" } else { "http" };
        let origin = Uri::builder().scheme(scheme).authority(endpoint.to_string()).path_and_query("/").build();
        let origin = origin.map_err(|_| Error::invalid("store", "its host cannot be part of an address"))?;
        let sender = Sender(sender);
        let grpc = Grpc::with_origin(sender.clone(), origin).max_decoding_message_size(ANSWER_MAX);
        Ok(Self { grpc, sender, answered, end })
    }

    /// Why there was no answer, if the connection has ended and that says more than what the question came to.
    pub(crate) async fn refusal(&self, status: &Status) -> Option<Error> {
        if status.source().is_none() {
            self.answered.store(true, Ordering::Relaxed);
            return None;
        }
        let mut end = self.end.clone();
        // If it ended as connections do, this ends with the task that would have said more.
        let ended = tokio::time::timeout(END_TAKES, end.wait_for(Option::is_some)).await;
        ended.ok()?.ok()?.clone()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.sender.0.is_closed()
    }

    /// One question, one answer.
    pub(crate) async fn unary<Q, A>(&self, path: &'static str, question: Q, badge: Option<Badge>) -> Result<A, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let mut grpc = self.ready().await?;
        let codec = ProstCodec::<Q, A>::default();
        let asking = grpc.unary(wear(Request::new(question), badge), PathAndQuery::from_static(path), codec);
        let answer = asking.await?.into_inner();
        self.answered.store(true, Ordering::Relaxed);
        Ok(answer)
    }

    /// Questions and answers as they come.
    pub(crate) async fn stream<Q, A>(
        &self,
        path: &'static str,
        questions: impl Stream<Item = Q> + Send + 'static,
        badge: Option<Badge>,
    ) -> Result<Streaming<A>, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let mut grpc = self.ready().await?;
        let codec = ProstCodec::<Q, A>::default();
        let mut request = wear(Request::new(questions), badge);
        // A member that has lost the others is to say so instead of staying silent.
        request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
        Ok(grpc.streaming(request, PathAndQuery::from_static(path), codec).await?.into_inner())
    }

    async fn ready(&self) -> Result<Grpc<Sender>, Status> {
        let mut grpc = self.grpc.clone();
        grpc.ready().await.map_err(|error| Status::from_error(Box::new(error)))?;
        Ok(grpc)
    }
}

fn wear<T>(mut request: Request<T>, badge: Option<Badge>) -> Request<T> {
    if let Some(badge) = badge {
        request.metadata_mut().insert("token", badge);
    }
    request
}

/// The sending half of a connection, as the gRPC client wants it.
#[derive(Clone)]
struct Sender(http2::SendRequest<Body>);

impl Service<http::Request<Body>> for Sender {
    type Response = http::Response<Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}
