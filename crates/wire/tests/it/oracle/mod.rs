//! The oracle: a second, naive reader of whole reply bodies, written from the notes on the wire formats and
//! from the corpus, never from the product's code. It reads the whole body into `serde_json` values, joins
//! strings, and sorts out calls at the very end, so it shares neither structure nor mistakes with the decoder
//! under test.

mod anthropic;
mod bedrock;
mod chat;
mod cohere;
pub mod corpus;
mod draft;
pub mod frames;
mod gemini;
mod ollama;
pub mod product;
mod responses;
mod surrogates;

use serde_json::Value;

/// The content of a reply body.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OracleOutcome {
    pub text: String,
    pub reasoning: String,
    pub calls: Vec<OracleCall>,
    /// Normalized; `None` if none was sent.
    pub finish: Option<String>,
    pub end: OracleEnd,
    /// The upstream's message, if it reported an error.
    pub error: Option<String>,
    /// Input and output tokens as last reported.
    pub usage: (Option<u64>, Option<u64>),
    /// Choices other than the first.
    pub choices: Vec<(u64, OracleOutcome)>,
}

/// A call that the client has to run.
#[derive(Clone, Debug, PartialEq)]
pub struct OracleCall {
    pub id: Option<String>,
    pub name: String,
    /// The value, or the raw text of a call that must not run.
    pub arguments: Result<Value, String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OracleEnd {
    Complete,
    #[default]
    Truncated,
    Error,
}

/// Reads a whole body of one of the eight APIs.
pub fn read(api: &str, body: &[u8]) -> OracleOutcome {
    match api {
        "openai-chat" => chat::read(body),
        "openai-responses" => responses::read(body),
        "anthropic" => anthropic::read(body),
        "gemini" => gemini::read(body),
        "ollama" => ollama::read(body),
        "cohere" => cohere::read(body),
        "bedrock-converse" => bedrock::read_converse(body),
        "bedrock-anthropic" => bedrock::read_anthropic(body),
        other => panic!("no oracle for {other}"),
    }
}
