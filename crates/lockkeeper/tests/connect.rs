//! Connecting by URL: what is wrong is said with a hint, and what is right reaches the store that is meant.

use lockkeeper::{ErrorKind, Keeper};

async fn refused(url: &str) -> (ErrorKind, String, String) {
    let error = Keeper::connect(url).await.expect_err(url);
    (error.kind(), error.to_string(), error.hint().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn what_is_wrong_with_a_url_is_said_with_a_hint() {
    for (url, kind, names, hint) in [
        ("locks.db", ErrorKind::Invalid, "no scheme", "sqlite:/"),
        ("redsi://localhost", ErrorKind::Invalid, "redsi", "memory:"),
        ("memory:?colour=red", ErrorKind::Invalid, "colour", "prefix"),
        ("memory:?prefix=a%20b", ErrorKind::Invalid, "' '", ""),
        ("memory:?prefix=%zz", ErrorKind::Invalid, "%", ""),
        ("memory:x?prefix=a&prefix=b", ErrorKind::Invalid, "twice", ""),
    ] {
        let (found, message, said) = refused(url).await;
        assert_eq!(found, kind, "{url}: {message}");
        assert!(message.contains(names), "{url}: {message}");
        assert!(said.contains(hint), "{url}: {said}");
    }
}

#[tokio::test]
async fn a_password_never_reaches_an_error() {
    for url in ["redis://user:hunter2@host/", "memory:hunter2?hunter3=hunter2", "hunter2", "hunter2 x:y"] {
        let error = Keeper::connect(url).await.expect_err(url);
        for text in [error.to_string(), format!("{error:?}"), error.hint().unwrap_or_default().to_owned()] {
            assert!(!text.contains("hunter2"), "{text}");
        }
    }
}

#[tokio::test]
async fn a_named_memory_is_shared_and_an_unnamed_one_is_not() {
    let (one, other) =
        (Keeper::connect("memory:shared").await.unwrap(), Keeper::connect("memory:shared").await.unwrap());
    let apart = Keeper::connect("memory:").await.unwrap();
    let hold = one.mutex("x").try_lock().await.unwrap().unwrap();
    assert!(other.mutex("x").try_lock().await.unwrap().is_none());
    assert!(apart.mutex("x").try_lock().await.unwrap().is_some());
    drop(hold);
}

#[tokio::test]
async fn prefixes_keep_names_apart() {
    let plain = Keeper::connect("memory:prefixes?prefix=").await.unwrap();
    let usual = Keeper::connect("memory:prefixes").await.unwrap();
    let team = Keeper::connect("memory:prefixes?prefix=team/a").await.unwrap();
    let holds = [
        plain.mutex("x").try_lock().await.unwrap(),
        usual.mutex("x").try_lock().await.unwrap(),
        team.mutex("x").try_lock().await.unwrap(),
    ];
    assert!(holds.iter().all(Option::is_some));
    let names = |views: Vec<lockkeeper::store::LockView>| -> Vec<String> {
        views.into_iter().map(|view| view.name.to_string()).collect()
    };
    assert_eq!(names(plain.list(None, 10).await.unwrap()), ["lockkeeper/x", "team/a/x", "x"]);
    assert_eq!(names(usual.list(None, 10).await.unwrap()), ["x"]);
    assert_eq!(names(team.list(None, 10).await.unwrap()), ["x"]);
}

#[cfg(not(feature = "sqlite"))]
#[tokio::test]
async fn a_store_that_is_not_built_in_names_its_feature() {
    let (kind, message, hint) = refused("sqlite:/tmp/never.db").await;
    assert_eq!(kind, ErrorKind::Unsupported);
    assert!(message.contains("not built in") && hint.contains("feature `sqlite`"), "{message} {hint}");
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn sqlite_urls() {
    let folder = std::env::temp_dir().join(format!("lockkeeper-connect-{}", std::process::id()));
    let path = folder.join("a b").join("locks.db");
    let url = format!("sqlite:{}", path.display().to_string().replace(' ', "%20"));
    let keeper = Keeper::connect(&format!("{url}?sync=normal")).await.unwrap();
    let other = Keeper::connect(&url.replace("sqlite:/", "sqlite:///")).await.unwrap();
    let hold = keeper.mutex("x").try_lock().await.unwrap().unwrap();
    assert!(other.mutex("x").try_lock().await.unwrap().is_none(), "both reach the same file");
    hold.release().await.unwrap();
    keeper.close().await.unwrap();
    other.close().await.unwrap();
    for (bad, says) in [
        ("sqlite:", "needs a path"),
        ("sqlite://host/path", "no host name"),
        ("sqlite:/x?sync=maybe", "neither"),
        ("sqlite:/x?sink=full", "sink"),
    ] {
        let (kind, message, hint) = refused(bad).await;
        assert_eq!(kind, ErrorKind::Invalid);
        assert!(message.contains(says) && !hint.is_empty(), "{bad}: {message}; {hint}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
