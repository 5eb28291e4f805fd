//! A person is asked before a tool changes something. `cargo run --example approval -- http://127.0.0.1:11434/v1 qwen3`

use std::io::Write;
use throughline::prelude::*;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let address = words.next().unwrap_or("http://127.0.0.1:11434/v1".to_owned());
    let model = words.next().unwrap_or("qwen3".to_owned());

    let delete =
        tool("files.delete", "Deletes the old files", |_: NoArguments, _| async { "deleted 3 files" });
    let app = Throughline::builder()
        .upstream(Upstream::new("local", Dialect::OpenaiChat, &address)?)
        .model(model)
        .tool(delete.effect(Effect::Write).agent_callable())
        .build()?;
    let mut turn = app.ask("Clean up, please.").await?;
    while let Some(event) = turn.next().await {
        match &event.kind {
            EventKind::ContentDelta { text, .. } => print!("{text}"),
            EventKind::ApprovalRequest { approval_id, question, .. } => {
                print!("{question} [y/n] ");
                std::io::stdout().flush()?;
                let mut answer = String::new();
                std::io::stdin().read_line(&mut answer)?;
                let yes = answer.trim() == "y";
                let decision = if yes { ApprovalDecision::Approve } else { ApprovalDecision::Deny };
                let _ = turn.answer(approval_id.clone(), decision).await;
            }
            _ => {}
        }
    }
    turn.finish().await.into_result()?;
    Ok(())
}
