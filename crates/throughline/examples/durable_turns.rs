//! A conversation in a file, which survives `kill -9`.
//! `cargo run --example durable_turns -- http://127.0.0.1:11434/v1 qwen3 chat.db`

use std::path::PathBuf;
use std::sync::Arc;
use throughline::prelude::*;
use throughline::store::{Catalog, SqliteSettings, SqliteStore};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let address = words.next().unwrap_or("http://127.0.0.1:11434/v1".to_owned());
    let model = words.next().unwrap_or("qwen3".to_owned());
    let file = PathBuf::from(words.next().unwrap_or("chat.db".to_owned()));

    let store = Arc::new(SqliteStore::open(&file, SqliteSettings::default()).await?);
    let app = Throughline::builder()
        .upstream(Upstream::new("local", Dialect::OpenaiChat, &address)?)
        .model(model)
        .log(store.clone())
        .build()?;
    for turn in app.resume_all(&store).await?.turns {
        println!("resumed: {}", turn.finish().await.text());
    }
    let newest = store
        .conversations("local", &Default::default(), &Default::default())
        .await?
        .items
        .into_iter()
        .next();
    let mut conversation = match newest {
        Some(found) => app.open_conversation(&store, &found.conversation.id.as_str().into(), None).await?,
        None => app.conversation().persist(&store)?,
    };
    let turn = conversation.ask("Say hello, and how often we have met.").await?;
    println!("{}", turn.finish().await.into_result()?.text());
    println!("{} messages in {}", conversation.history().len(), file.display());
    store.close().await;
    Ok(())
}
