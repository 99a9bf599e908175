//! A web handler under a lock: one payment per order at a time, and the token goes on to whatever is changed.
//!
//! Surprise: when a client hangs up, its handler is dropped and the hold with it; the lock is then released in the
//! background. Here the server asks itself once and ends.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::post;
use lockkeeper::{Error, ErrorKind, Keeper, Token};

type Refusal = (StatusCode, String);

async fn pay(State(keeper): State<Keeper>, Path(order): Path<u64>) -> Result<String, Refusal> {
    // Shorter than the patience of whoever asks, so that they hear of it.
    let lock = keeper.mutex(&format!("orders/{order}")).wait(Duration::from_secs(2));
    let hold = lock.lock().await.map_err(refuse)?;
    let receipt = hold.run(charge(order, hold.token())).await.map_err(|lost| refuse(lost.into()))?;
    hold.release().await.map_err(refuse)?;
    Ok(receipt)
}

/// What changes the resource gets the token along, and the resource refuses a smaller one than it has seen.
async fn charge(order: u64, token: Option<Token>) -> String {
    format!("order {order} is paid, token {}", token.map_or(0, Token::as_u64))
}

fn refuse(error: Error) -> Refusal {
    let status = match error.kind() {
        ErrorKind::Timeout => StatusCode::CONFLICT,
        ErrorKind::Invalid => StatusCode::BAD_REQUEST,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    (status, error.to_string())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let keeper = Keeper::connect("memory:").await?;
    let app = Router::new().route("/orders/{order}/pay", post(pay)).with_state(keeper.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = tokio::spawn(async move { axum::serve(listener, app).await });

    let answer = tokio::task::spawn_blocking(move || ask(address, "/orders/42/pay")).await??;
    println!("{answer}");
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.contains("order 42 is paid, token"));

    // While somebody else holds the order, the handler says so after its wait.
    let hold = keeper.mutex("orders/43").lock().await?;
    let answer = tokio::task::spawn_blocking(move || ask(address, "/orders/43/pay")).await??;
    println!("{answer}");
    assert!(answer.starts_with("HTTP/1.1 409 Conflict"));
    hold.release().await?;

    server.abort();
    keeper.close().await?;
    Ok(())
}

fn ask(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    write!(stream, "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
