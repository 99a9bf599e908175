//! Coming in again: by an owner that is named, or whose scope it is.

use lockkeeper_core::Owner;
use lockkeeper_core::layers::wrap;

use super::{SOON, release, standing, until_standing};
use crate::meddle::Meddle;
use crate::{Outcome, World};

fn owner() -> Owner {
    Owner::new("one who comes again").expect("an owner")
}

/// The second time costs nothing: no call, the same token, one claim.
pub async fn an_owner_comes_in_again_without_asking(world: World) -> Outcome {
    let (name, owner, counter) = (world.name(), owner(), Meddle::count_only());
    let keeper = world.builder().with_store(wrap(world.store().await, counter.clone()));
    let mutex = keeper.mutex(name.as_str()).owner(&owner).wait(SOON);
    let outer = mutex.lock().await.expect("a lock");
    let asked = counter.count("enter");
    let inner = mutex.lock().await.expect("it comes in again");
    let third = mutex.try_lock().await.expect("an answer").expect("it comes in again");
    assert_eq!(counter.count("enter"), asked);
    assert_eq!((inner.token(), third.token()), (outer.token(), outer.token()));
    assert_eq!(standing(&world.store().await, &name).await, 1);
    release(third).await;
    release(inner).await;
    assert_eq!(counter.count("leave"), 0);
    assert!(outer.is_held());
    release(outer).await;
    until_standing(&world.store().await, &name, 0, SOON).await;
    Ok(())
}

/// Inside a scope nested calls need not pass the owner on.
pub async fn a_scope_is_an_owner(world: World) -> Outcome {
    let (keeper, name) = (world.keeper().await, world.name());
    owner()
        .scope(async {
            let outer = keeper.mutex(name.as_str()).wait(SOON).lock().await.expect("a lock");
            let inner = keeper.mutex(name.as_str()).wait(SOON).lock().await.expect("it comes in again");
            assert_eq!(inner.token(), outer.token());
            drop(outer);
            assert!(inner.is_held(), "the one that is left holds it");
            release(inner).await;
        })
        .await;
    until_standing(&world.store().await, &name, 0, SOON).await;
    Ok(())
}

/// Another owner, and one without a name, wait like everybody else.
pub async fn another_owner_waits(world: World) -> Outcome {
    let (keeper, name, first, second) = (world.keeper().await, world.name(), owner(), owner());
    let held = keeper.mutex(name.as_str()).owner(&first).wait(SOON).lock().await.expect("a lock");
    assert!(keeper.mutex(name.as_str()).owner(&second).try_lock().await.expect("an answer").is_none());
    assert!(keeper.mutex(name.as_str()).try_lock().await.expect("an answer").is_none());
    release(held).await;
    Ok(())
}

/// It is released when the last hold of its owner is, in whatever order they go, and can be taken anew.
pub async fn the_last_one_out_releases(world: World) -> Outcome {
    let (keeper, store, name, owner) = (world.keeper().await, world.store().await, world.name(), owner());
    let mutex = keeper.mutex(name.as_str()).owner(&owner).wait(SOON);
    let mut tokens = Vec::new();
    for _ in 0..3 {
        let outer = mutex.lock().await.expect("a lock");
        let inner = mutex.lock().await.expect("it comes in again");
        tokens.push(outer.token());
        release(outer).await;
        assert_eq!(standing(&store, &name).await, 1);
        assert!(inner.is_held());
        drop(inner);
        until_standing(&store, &name, 0, SOON).await;
    }
    assert!(tokens.is_sorted() && (tokens[0] < tokens[1] || tokens[0].is_none()), "{tokens:?}");
    Ok(())
}
