//! The store is a URL from the configuration; the code stays the same.

use lockkeeper::{ErrorKind, Keeper, STORES};

#[tokio::main]
async fn main() -> lockkeeper::Result<()> {
    for (scheme, built_in) in STORES {
        println!("{scheme}: {}", if *built_in { "built in" } else { "not built in" });
    }
    let folder = std::env::temp_dir().join(format!("lockkeeper-example-{}", std::process::id()));
    for url in ["memory:".to_owned(), format!("sqlite:{}/locks.db", folder.display())] {
        let keeper = Keeper::connect(&url).await?;
        let hold = keeper.mutex("nightly").lock().await?;
        let (profile, token) = (keeper.profile(), hold.token().expect("both have tokens"));
        println!("{}: token {token}; tokens are {:?}", profile.scheme, profile.tokens);
        hold.release().await?;
        keeper.close().await?;
    }
    std::fs::remove_dir_all(&folder).ok();

    let error = Keeper::connect("redsi://localhost").await.expect_err("a typing error");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    println!("error: {error}\n  hint: {}", error.hint().unwrap_or_default());
    Ok(())
}
