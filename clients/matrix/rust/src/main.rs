//! async-openai, as its users write it: the cells of `cells.json`, one line of JSON for each, as `cells.py` does for others.

use async_openai::Client;
use async_openai::config::OpenAIConfig;
use async_openai::error::OpenAIError;
use async_openai::types::{ChatCompletionRequestMessage, CreateChatCompletionRequest, FinishReason};
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const NAME: &str = "async-openai";
/// As Cargo.toml pins it.
const VERSION: &str = "0.30.1";

type Seen = Result<Value, String>;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    say(json!({"client": NAME, "version": VERSION}));
    for cell in std::env::args().skip(1) {
        say(json!({"client": NAME, "cell": cell, "ok": null}));
        let wanted = &table()[&cell]["answer"];
        let (ok, detail) = match run(&cell).await {
            Ok(seen) if seen.is_null() || seen == *wanted => (true, String::new()),
            Ok(seen) => (false, format!("saw {seen}, not {wanted}")),
            Err(why) => (false, why),
        };
        say(json!({"client": NAME, "cell": cell, "ok": ok, "detail": detail}));
    }
}

async fn run(cell: &str) -> Seen {
    match cell {
        "plain" => Ok(json!(ask(request(cell)).await?)),
        "stream" | "server_tool" | "slow_tool" => Ok(json!(streamed(cell).await.map_err(text)?)),
        "client_tool" | "mixed_tools" => round_trip(cell, &["Paris"]).await,
        "parallel_tools" => round_trip(cell, &["Paris", "Oslo"]).await,
        "structured" | "structured_tools" => structured(cell).await,
        "approval" => ends(&streamed(cell).await.map_err(text)?, "As you wish."),
        "wrong_key" => {
            refused(client("tl_nobody").chat().create(request("plain")).await.err(), "unauthenticated")
        }
        "rate_limit" => {
            refused(client(&key()).chat().create(request(cell)).await.err(), "rate_limit_exceeded")
        }
        "cut" => refused(streamed(cell).await.err(), "upstream_lost"),
        "cancel" => cancel().await,
        _ => Err("there is no such cell".to_owned()),
    }
}

fn client(key: &str) -> Client<OpenAIConfig> {
    let config = OpenAIConfig::new().with_api_base(format!("{}/v1", variable("BASE_URL"))).with_api_key(key);
    // Refused once is refused: otherwise it asks again for a quarter of an hour.
    let impatient = backoff::ExponentialBackoff {
        max_elapsed_time: Some(std::time::Duration::ZERO),
        ..Default::default()
    };
    Client::with_config(config).with_backoff(impatient)
}

fn request(cell: &str) -> CreateChatCompletionRequest {
    with(cell, json!({}))
}

/// A request with what is asked in this cell, and more fields.
fn with(cell: &str, more: Value) -> CreateChatCompletionRequest {
    let mut request =
        json!({"model": "default", "messages": [{"role": "user", "content": table()[cell]["asked"]}]});
    request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(request).unwrap()
}

async fn ask(request: CreateChatCompletionRequest) -> Result<String, String> {
    let answer = client(&key()).chat().create(request).await.map_err(text)?;
    answer.choices[0].message.content.clone().ok_or("no content".to_owned())
}

async fn streamed(cell: &str) -> Result<String, OpenAIError> {
    let mut stream = client(&key()).chat().create_stream(request(cell)).await?;
    let mut whole = String::new();
    while let Some(chunk) = stream.next().await {
        let choice = chunk?.choices.into_iter().next().expect("a choice in every chunk");
        whole.push_str(&choice.delta.content.unwrap_or_default());
        assert!(choice.finish_reason.is_none_or(|finish| finish == FinishReason::Stop));
    }
    Ok(whole)
}

/// Asks, runs the client's tools, and asks again until there is a text.
async fn round_trip(cell: &str, cities: &[&str]) -> Seen {
    let parameters =
        json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let tool = json!({"type": "function", "function": {"name": "get_weather", "parameters": parameters}});
    let mut request = with(cell, json!({"tools": [tool]}));
    let mut seen = Vec::new();
    loop {
        let answer = client(&key()).chat().create(request.clone()).await.map_err(text)?;
        let message = answer.choices.into_iter().next().expect("a choice").message;
        let calls = message.tool_calls.clone().unwrap_or_default();
        if calls.is_empty() {
            let answered = || Ok(json!(message.content));
            return if seen == cities { answered() } else { Err(format!("the tool ran for {seen:?}")) };
        }
        request
            .messages
            .push(history(json!({"role": "assistant", "content": message.content, "tool_calls": calls})));
        for call in calls {
            let arguments: Value =
                serde_json::from_str(&call.function.arguments).map_err(|error| error.to_string())?;
            let city = arguments["city"].as_str().unwrap_or_default().to_owned();
            request.messages.push(history(
                json!({"role": "tool", "tool_call_id": call.id, "content": format!("{city}: sunny")}),
            ));
            seen.push(city);
        }
    }
}

fn history(message: Value) -> ChatCompletionRequestMessage {
    serde_json::from_value(message).unwrap()
}

async fn structured(cell: &str) -> Seen {
    let schema = json!({
        "type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"], "additionalProperties": false,
    });
    let format =
        json!({"type": "json_schema", "json_schema": {"name": "Person", "schema": schema, "strict": true}});
    let answer = ask(with(cell, json!({"response_format": format}))).await?;
    serde_json::from_str(&answer).map_err(|error| format!("{error}: {answer}"))
}

/// Dropped in mid-answer: the server's turn ends, too.
async fn cancel() -> Seen {
    idle().await;
    let mut stream = client(&key()).chat().create_stream(request("cancel")).await.map_err(text)?;
    while let Some(chunk) = stream.next().await {
        if chunk.map_err(text)?.choices[0].delta.content.as_deref().is_some_and(|piece| !piece.is_empty()) {
            break;
        }
    }
    if running_turns().await == 0 {
        return Err("the turn does not run".to_owned());
    }
    drop(stream);
    idle().await;
    Ok(Value::Null)
}

/// Asked again until no turn runs: the runner bounds the whole.
async fn idle() {
    while running_turns().await > 0 {}
}

/// How many turns the server runs, by the plainest client of all; those that wait for the next request are not among them.
async fn running_turns() -> usize {
    let host = variable("BASE_URL").replace("http://", "");
    let mut socket = tokio::net::TcpStream::connect(&host).await.unwrap();
    let head = format!("GET /v1/turns HTTP/1.0\r\nHost: {host}\r\nAuthorization: Bearer {}\r\n\r\n", key());
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
    let turns: Value = serde_json::from_str(body).unwrap();
    turns["items"].as_array().unwrap().iter().filter(|turn| turn["waits_for"].is_null()).count()
}

fn refused(error: Option<OpenAIError>, code: &str) -> Seen {
    match error.map(text) {
        Some(error) if error.contains(code) => Ok(Value::Null),
        Some(error) => Err(format!("`{code}` is not in `{error}`")),
        None => Err("no error".to_owned()),
    }
}

fn ends(seen: &str, end: &str) -> Seen {
    if seen.ends_with(end) { Ok(Value::Null) } else { Err(format!("saw {seen:?}")) }
}

fn text(error: OpenAIError) -> String {
    error.to_string()
}

fn table() -> Value {
    serde_json::from_str(include_str!("../../cells.json")).unwrap()
}

fn key() -> String {
    variable("KEY")
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"))
}

fn say(line: Value) {
    println!("{line}");
}
