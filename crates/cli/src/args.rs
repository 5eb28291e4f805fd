//! The command line as types.

use crate::messages;
use clap::{Args as ClapArgs, Parser, Subcommand};
use throughline_wire::Dialect;

/// One turn, one message, one stream: talk to any model with tools that run in mid-reply.
#[derive(Debug, Parser)]
#[command(name = "throughline", version, propagate_version = true)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Decode a recorded or piped response of any provider to one JSON object
    #[command(after_long_help = messages::DECODE_HELP)]
    Decode(Decode),
}

/// `throughline decode`.
#[derive(Debug, ClapArgs)]
pub struct Decode {
    /// Wire format of the body: openai-chat, openai-responses, anthropic, gemini, ollama, cohere, bedrock-converse or
    /// bedrock-anthropic
    #[arg(long, value_name = "API")]
    pub api: Dialect,
    /// Feed the decoder pieces of 1 to 300 bytes, cut by this seed; the result is the same for every seed
    #[arg(long, value_name = "N")]
    pub chunk_seed: Option<u64>,
    /// Turn tool calls that leaked into the text into calls
    #[arg(long)]
    pub recover: bool,
    /// Print each thing the stream said as a JSON line, as it arrives, instead of the whole
    #[arg(long)]
    pub events: bool,
    /// Split <think>…</think> in the text off as reasoning
    #[arg(long)]
    pub think: bool,
}
