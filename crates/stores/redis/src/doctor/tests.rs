//! Answers as servers gave them, for the judges of this folder; those of Valkey and KeyDB as their documentation has them.

use lockkeeper_core::checkup::{Kept, Level, Promise};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::seen::{Fields, Seen};
use crate::{Address, Options};

/// Redis 7.0.15 without persistence.
pub(super) const PLAIN: &str = include_str!("recorded/plain.txt");
/// Redis 7.0.15 with `appendonly yes` and `appendfsync always`.
pub(super) const DURABLE: &str = include_str!("recorded/durable.txt");
/// A replica of it.
pub(super) const REPLICA: &str = include_str!("recorded/replica.txt");
/// Valkey with an append-only file.
pub(super) const VALKEY: &str = include_str!("recorded/valkey.txt");
/// KeyDB with two servers that both take writes.
pub(super) const KEYDB: &str = include_str!("recorded/keydb.txt");

/// As if a server had told this: lines of `INFO`, and after a line `= CONFIG`, settings.
pub(super) fn seen(recorded: &str) -> Seen {
    let (info, config) = recorded.split_once("= CONFIG\n").unwrap_or((recorded, ""));
    Seen {
        info: Some(Fields::of_info(info)),
        config: Fields::of_info(config),
        config_seen: !config.is_empty(),
        user: Some("default".to_owned()),
        default_user_writes: Some(true),
        ..Seen::default()
    }
}

/// The same with another setting.
pub(super) fn with(seen: &Seen, setting: &str, value: &str) -> Seen {
    let mut seen = seen.clone();
    seen.config.set(setting, value);
    seen
}

#[test]
fn recorded_answers_are_complete() {
    for recorded in [PLAIN, DURABLE, REPLICA, VALKEY, KEYDB] {
        for field in ["redis_version:", "role:", "aof_enabled:", "maxmemory_policy:", "= CONFIG\n", "appendfsync:"] {
            assert!(recorded.contains(field), "{field} in\n{recorded}");
        }
    }
}

/// One client of a server that knows nothing but `INFO`, `TIME` and `PING`, in the older protocol.
async fn answer(stream: TcpStream) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        let count: usize = line.trim_start_matches('*').trim_end().parse().unwrap_or_default();
        let mut words = Vec::new();
        for _ in 0..count {
            let mut length = String::new();
            stream.read_line(&mut length).await?;
            let mut word = vec![0; length.trim_start_matches('$').trim_end().parse::<usize>().unwrap_or_default() + 2];
            stream.read_exact(&mut word).await?;
            words.push(String::from_utf8_lossy(&word).trim_end().to_owned());
        }
        let info = PLAIN.split("= CONFIG").next().unwrap_or_default().replace("7.0.15", "5.0.14");
        let said = match words[0].as_str() {
            "INFO" => format!("${}\r\n{info}\r\n", info.len()),
            "TIME" => {
                let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
                let (seconds, micros) = (now.as_secs().to_string(), format!("{:06}", now.subsec_micros()));
                format!("*2\r\n${}\r\n{seconds}\r\n$6\r\n{micros}\r\n", seconds.len())
            }
            "PING" => "+PONG\r\n".to_owned(),
            other => format!("-ERR unknown command `{other}`, with args beginning with: \r\n"),
        };
        stream.write_all(said.as_bytes()).await?;
    }
}

#[tokio::test]
async fn a_server_that_is_too_old_is_looked_over_all_the_same() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream));
        }
    });
    let address = Address::Tcp { host: "127.0.0.1".to_owned(), port, tls: None };
    let report = super::checkup(Options::at(address)).await.unwrap();
    let danger =
        |topic: &str| report.findings.iter().any(|finding| finding.topic == topic && finding.level == Level::Danger);
    for topic in ["version", "rights", "wake-ups", "trial"] {
        assert!(danger(topic), "{topic} in {report:#?}");
    }
    for promise in [Promise::Usable, Promise::Push, Promise::Tokens, Promise::Fair] {
        assert_eq!(report.kept(promise), Kept::No, "{promise:?}");
    }
    assert!(report.trust().contains("has no RESP3"), "{}", report.trust());
}
