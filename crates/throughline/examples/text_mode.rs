//! Tools for a model that cannot call any. `cargo run --example text_mode -- http://127.0.0.1:11434/v1 gemma3`

use throughline::prelude::*;
use throughline::tools::{TextRunOptions, ToolRegistry, run_text};

fn clock() -> impl Tool {
    tool("clock.now", "The time", |_: NoArguments, _| async { "12:00" }).effect(Effect::Read).agent_callable()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let address = words.next().unwrap_or("http://127.0.0.1:11434/v1".to_owned());
    let model = words.next().unwrap_or("gemma3".to_owned());

    // As a turn: the tools go into the prompt, and blocks in the text become calls like any others.
    let app = Throughline::builder()
        .upstream(Upstream::new("local", Dialect::OpenaiChat, &address)?)
        .model(model)
        .mode(ToolMode::Text)
        .tool(clock())
        .build()?;
    let message = app.ask("What time is it?").await?.finish().await.into_result()?;
    println!("{} ({} calls)", message.text(), message.calls().count());

    // As one function, for a text that you already have.
    let tools = ToolRegistry::builder().tool(clock()).build()?;
    let reply = "<<<[TOOL_REQUEST]>>>\ntool_name:「始」clock_now「末」\n<<<[END_TOOL_REQUEST]>>>";
    println!("{}", run_text(reply, &tools, &TextRunOptions::default()).await.results);
    Ok(())
}
