//! A test without a key: the model is a script over real HTTP. `cargo run --example scripted_model`

use serde_json::json;
use throughline::prelude::*;
use throughline_testkit::{FakeDialect, FakeUpstream, ModelScript, ScriptQueue};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = FakeUpstream::start(ScriptQueue::new([
        ModelScript::new().say("Let me look. ").call("weather_today", json!({})),
        ModelScript::new().say("Sunny in Paris."),
    ]))
    .await?;
    let weather = tool("weather.today", "Today's weather", |_: NoArguments, _| async { "sunny" });
    let app = Throughline::builder()
        .upstream(Upstream::new("script", Dialect::OpenaiChat, &server.base_url(FakeDialect::OpenaiChat))?)
        .model("any")
        .tool(weather.effect(Effect::Read).agent_callable())
        .build()?;
    let message = app.ask("Weather in Paris?").await?.finish().await.into_result()?;
    assert_eq!(message.calls().next().and_then(|call| call.status), Some(CallStatus::Success));
    assert!(message.text().ends_with("Sunny in Paris."));
    // What a strict provider would have refused, and what the model was sent.
    assert!(server.violations().is_empty());
    println!(
        "{} requests; the last says: {:?}",
        server.requests().len(),
        server.requests()[1].messages.last()
    );
    Ok(())
}
