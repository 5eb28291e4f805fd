//! Ctrl-C stops the turn and retains its text so far.
//! `cargo run --example cancel -- http://127.0.0.1:11434/v1 qwen3`

use throughline::prelude::*;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let address = words.next().unwrap_or("http://127.0.0.1:11434/v1".to_owned());
    let model = words.next().unwrap_or("qwen3".to_owned());

    let upstream = Upstream::new("local", Dialect::OpenaiChat, &address)?;
    let app = Throughline::builder().upstream(upstream).model(model).build()?;
    let mut turn = app.ask("Count to a thousand.").await?;
    let control = turn.control();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            let _ = control.cancel().await;
        }
    });
    while let Some(event) = turn.next().await {
        if let EventKind::ContentDelta { text, .. } = event.kind {
            println!("{text}");
        }
    }
    println!("{:?} after {} characters", turn.message().status, turn.message().text().len());
    Ok(())
}
