//! A source whose tools change while it runs.
//! `cargo run --example own_source -- http://127.0.0.1:11434/v1 qwen3`

use async_trait::async_trait;
use std::sync::Arc;
use throughline::ToolSource;
use throughline::prelude::*;
use throughline::tools::SourceReporter;

/// One tool for each file of a folder.
struct Files(std::path::PathBuf);

#[async_trait]
impl ToolSource for Files {
    fn name(&self) -> &str {
        "files"
    }

    async fn start(&self, reporter: SourceReporter) {
        let entries = match std::fs::read_dir(&self.0) {
            Ok(entries) => entries,
            Err(error) => return reporter.set_fault(error.to_string(), Some("create the folder".to_owned())),
        };
        let read = |path: std::path::PathBuf| {
            let name = format!("files.{}", path.file_stem()?.to_str()?);
            let body = move |_: NoArguments, _| {
                let path = path.clone();
                async move { Ok(std::fs::read_to_string(path)?) }
            };
            let tool = try_tool(&name, "Reads the file", body).effect(Effect::Read).source("files");
            Some(Arc::new(tool.agent_callable()) as Arc<dyn Tool>)
        };
        reporter.set_tools(entries.flatten().filter_map(|entry| read(entry.path())).collect());
    }

    async fn stop(&self) {}
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let address = words.next().unwrap_or("http://127.0.0.1:11434/v1".to_owned());
    let model = words.next().unwrap_or("qwen3".to_owned());
    let folder = words.next().unwrap_or(".".to_owned());

    let app = Throughline::builder()
        .upstream(Upstream::new("local", Dialect::OpenaiChat, &address)?)
        .model(model)
        .source(Arc::new(Files(folder.into())))
        .build()?;
    println!("{}", app.ask("What is in the readme?").await?.finish().await.into_result()?.text());
    Ok(())
}
