//! Two tools, one of which can fail. `cargo run --example two_tools -- http://127.0.0.1:11434/v1 qwen3`

use schemars::JsonSchema;
use serde::Deserialize;
use throughline::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct City {
    city: String,
}

#[derive(Deserialize, JsonSchema)]
struct Note {
    text: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let address = words.next().unwrap_or("http://127.0.0.1:11434/v1".to_owned());
    let model = words.next().unwrap_or("qwen3".to_owned());

    let weather = tool("weather.today", "Today's weather in a city", |args: City, _| async move {
        format!("{}: sunny, 22 °C", args.city)
    });
    let note = try_tool("notes.save", "Saves a note", |args: Note, _| async move {
        std::fs::write(std::env::temp_dir().join("note.txt"), args.text)?;
        Ok("saved")
    });
    let app = Throughline::builder()
        .upstream(Upstream::new("local", Dialect::OpenaiChat, &address)?)
        .model(model)
        .tool(weather.effect(Effect::Read).agent_callable())
        .tool(note.effect(Effect::Write).agent_callable())
        .allow("notes.*")
        .build()?;
    let message = app.ask("What's the weather in Paris? Note it down.").await?.finish().await;
    for call in message.calls() {
        println!("{:?} {:?}", call.tool_name, call.status);
    }
    println!("{}", message.into_result()?.text());
    Ok(())
}
