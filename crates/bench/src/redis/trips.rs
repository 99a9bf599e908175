//! How many round trips a free lock takes, counted by a proxy between the client and the server.

use lockkeeper::Keeper;
use lockkeeper_conformance::rig::Proxy;
use tokio::runtime::Runtime;

use crate::Outcome;
use crate::pairs::name;
use crate::report::Figure;

/// How many pairs are counted.
const PAIRS: usize = 200;

/// Round trips per lock and release.
pub fn figure(runtime: &Runtime, server_port: u16) -> Outcome<Figure> {
    let proxy = Proxy::to(server_port)?;
    let url = format!("redis://127.0.0.1:{}", proxy.port());
    let trips = runtime.block_on(async {
        let keeper = Keeper::connect(&url).await?;
        // The first one connects and brings the scripts.
        keeper.mutex(&name(0)).lock().await?.release().await?;
        let before = proxy.count_round_trips();
        for pair in 0..PAIRS {
            keeper.mutex(&name(pair)).lock().await?.release().await?;
        }
        let trips = proxy.count_round_trips() - before;
        keeper.close().await?;
        Outcome::Ok(trips)
    })?;
    Ok(Figure::new("round trips per lock + release, free", trips as f64 / PAIRS as f64, "").exactly(2.0))
}
