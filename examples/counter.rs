//! Stock that is never oversold, and needs no lock: one step at the store.

use lockkeeper::Keeper;

#[tokio::main(flavor = "current_thread")]
async fn main() -> lockkeeper::Result<()> {
    let keeper = Keeper::connect("memory:").await?;
    let stock = keeper.counter("stock/42");
    stock.add(5).await?;

    let customers: Vec<_> = (1..=20)
        .map(|customer| {
            let stock = stock.clone();
            tokio::spawn(async move { stock.take(1).await.map(|left| (customer, left)) })
        })
        .collect();
    let mut sold = 0;
    for customer in customers {
        // `None` is the answer "too few", and not an error.
        if let (customer, Some(left)) = customer.await.expect("the task did not panic")? {
            println!("customer {customer} has one, {left} left");
            sold += 1;
        }
    }
    println!("{sold} of 20 customers got one");
    assert_eq!((sold, stock.get().await?), (5, 0));
    Ok(())
}
