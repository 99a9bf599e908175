//! One leads, the others stand by, and everybody can see who leads.

use lockkeeper::Keeper;

#[tokio::main(flavor = "current_thread")]
async fn main() -> lockkeeper::Result<()> {
    // Three processes would each have a keeper of their own; here they share a store by its name.
    let (north, south, watcher) = (
        Keeper::connect("memory:cluster").await?,
        Keeper::connect("memory:cluster").await?,
        Keeper::connect("memory:cluster").await?,
    );
    let mut observer = watcher.election("scheduler").observe()?;
    assert_eq!(observer.next().await?, None);
    println!("nobody leads");

    // What the note says is what others see: mostly an address.
    let mut leadership = north.election("scheduler").note("north:9000").campaign().await?;
    let first = observer.next().await?.expect("somebody leads");
    println!("{} leads", String::from_utf8_lossy(&first.note));

    // The other candidate waits in line, without a limit.
    let standby = tokio::spawn(async move {
        let candidate = south.election("scheduler").note("south:9000").forever();
        candidate.campaign().await
    });

    leadership.proclaim("north:9001").await?;
    println!("{} leads, at a new address", String::from_utf8_lossy(&observer.next().await?.expect("the same").note));

    // A leader works only while it leads: `run` drops the work when leadership is lost.
    leadership.run(async { println!("north plans the day") }).await?;
    leadership.resign().await?;

    let leadership = standby.await.expect("the task did not panic")?;
    let second = loop {
        // Between two leaders an observer may see none.
        if let Some(leader) = observer.next().await? {
            break leader;
        }
    };
    println!("{} leads", String::from_utf8_lossy(&second.note));
    assert_eq!(second.note, b"south:9000");
    assert!(second.token > first.token);
    leadership.resign().await
}
