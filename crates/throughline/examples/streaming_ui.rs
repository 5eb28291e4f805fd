//! A turn feeds a user interface through a channel. `cargo run --example streaming_ui -- http://127.0.0.1:11434/v1 qwen3`

use throughline::prelude::*;
use tokio::sync::mpsc;

enum UiUpdate {
    Text(String),
    CallStarted(String),
    CallEnded(CallStatus),
    Done(Result<(), String>),
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let address = words.next().unwrap_or("http://127.0.0.1:11434/v1".to_owned());
    let model = words.next().unwrap_or("qwen3".to_owned());

    let clock = tool("clock.now", "The time", |_: NoArguments, _| async { "12:00" }).effect(Effect::Read);
    let app = Throughline::builder()
        .upstream(Upstream::new("local", Dialect::OpenaiChat, &address)?)
        .model(model)
        .tool(clock.agent_callable())
        .build()?;
    let (updates, mut screen) = mpsc::channel(64);
    let mut turn = app.ask("What time is it?").await?;
    tokio::spawn(async move {
        while let Some(event) = turn.next().await {
            let update = match event.kind {
                EventKind::ContentDelta { text, .. } => UiUpdate::Text(text),
                EventKind::ToolUse { tool_name, .. } => UiUpdate::CallStarted(tool_name.into_string()),
                EventKind::ToolResult(result) => UiUpdate::CallEnded(result.status),
                _ => continue,
            };
            if updates.send(update).await.is_err() {
                return; // The window is closed: dropping the turn stops it.
            }
        }
        let ended = turn.finish().await.into_result().map(drop).map_err(|fault| fault.to_string());
        let _ = updates.send(UiUpdate::Done(ended)).await;
    });
    while let Some(update) = screen.recv().await {
        match update {
            UiUpdate::Text(text) => print!("{text}"),
            UiUpdate::CallStarted(name) => println!("[{name} …]"),
            UiUpdate::CallEnded(status) => println!("[{status:?}]"),
            UiUpdate::Done(Ok(())) => println!(),
            UiUpdate::Done(Err(why)) => println!("\n{why}"),
        }
    }
    Ok(())
}
