//! `OPENAI_API_KEY=… cargo run --example hello`

use schemars::JsonSchema;
use serde::Deserialize;
use throughline::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct City {
    city: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let weather = tool("weather.today", "Today's weather in a city", |args: City, _context| async move {
        format!("{}: sunny, 22 °C", args.city)
    });
    let upstream = Upstream::known("openai")?.key_from_env();
    let weather = weather.effect(Effect::Read).agent_callable();
    let app = Throughline::builder().upstream(upstream).model("gpt-5-mini").tool(weather).build()?;
    let mut turn = app.ask("What's the weather in Paris?").await?;
    while let Some(event) = turn.next().await {
        if let EventKind::ContentDelta { text, .. } = event.kind {
            print!("{text}");
        }
    }
    turn.finish().await.into_result().map_err(|fault| fault.to_string())?;
    Ok(())
}
