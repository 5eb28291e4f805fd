//! An invocation command of an asynchronous plugin: its first answer ends the call, and the program works on and calls back.

use super::async_results::AsyncResults;
use super::command_tool::{PluginTool, output_or_error};
use super::plugin::VcpPlugin;
use super::{ANSWER_BYTES_MAX, reply};
use crate::context::ToolContext;
use crate::process::{ChildExit, ChildProcess, ProgramSpec};
use crate::tool::{Tool, ToolError, ToolSpec};
use async_trait::async_trait;
use serde_json::Value;
use std::sync::Arc;
use throughline_wire::{CallArguments, ToolOutput};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout_at};

/// Most programs that work on after their answer.
pub const BACKGROUND_MAX: usize = 16;
/// Most bytes of stderr that a failure shows.
const COMPLAINTS_BYTES_MAX: usize = 4_000;
/// Number of bytes read at a time.
const CHUNK_BYTES: usize = 16 * 1024;

/// A tool for one invocation command of an asynchronous plugin.
pub(super) struct AsyncPluginTool {
    pub(super) command: PluginTool,
    pub(super) results: Arc<AsyncResults>,
    /// Shared by all commands of the source.
    pub(super) background: Arc<Semaphore>,
}

#[async_trait]
impl Tool for AsyncPluginTool {
    fn definition(&self) -> ToolSpec {
        self.command.spec.clone()
    }

    async fn call(&self, arguments: &CallArguments, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let Ok(permit) = self.background.clone().try_acquire_owned() else {
            return Err(ToolError::new(format!(
                "the limit of {BACKGROUND_MAX} running plugin tasks is reached; try again after one has ended"
            )));
        };
        let plugin = self.command.plugin.clone();
        let deadline = Instant::now() + plugin.timeout;
        let mut running = self.program().start()?;
        let input = self.command.input(arguments);
        let mut first = Box::pin(first_answer(&mut running, input.as_bytes()));
        let answer = tokio::select! {
            answer = &mut first => answer,
            () = context.cancellation().cancelled() => {
                drop(first);
                // Dropped at the end of the grace, it is killed.
                let _ = running.stop().await;
                return Err(ToolError::new("it was stopped before its first answer"));
            }
        };
        drop(first);
        match answer {
            FirstAnswer::Whole(answer) => {
                tokio::spawn(async move {
                    work_on(running, deadline).await;
                    drop(permit);
                });
                output_or_error(&plugin, Ok(answer))
            }
            FirstAnswer::None { stdout, stderr } => {
                let exit = timeout_at(deadline, running.wait()).await;
                let has_ended_itself = matches!(exit, Ok(Ok(ChildExit { code: Some(_), .. })));
                let outcome = output_or_error(&plugin, no_answer(&plugin, &stdout, &stderr));
                outcome.map_err(|error| match error {
                    ToolError::Failed { message, partial } if !has_ended_itself => {
                        ToolError::Lost { message: explain_exit(message, exit), partial }
                    }
                    other => other,
                })
            }
        }
    }
}

impl AsyncPluginTool {
    /// With the address for the result.
    fn program(&self) -> ProgramSpec {
        let mut program = self.command.plugin.program.clone();
        if let Some(url) = self.results.callback_url() {
            program.environment.insert("CALLBACK_BASE_URL".to_owned(), url);
        }
        if let Some(vcp) = &self.command.spec.vcp_command {
            program.environment.insert("PLUGIN_NAME_FOR_CALLBACK".to_owned(), vcp.tool_name.clone());
        }
        program
    }
}

enum FirstAnswer {
    /// JSON with a `status`.
    Whole(Value),
    /// The program ended without an answer.
    None { stdout: Vec<u8>, stderr: Vec<u8> },
}

async fn first_answer(running: &mut ChildProcess, input: &[u8]) -> FirstAnswer {
    let (stdin, stdout) = (running.stdin.take(), running.stdout.take());
    let write = async {
        if let Some(mut stdin) = stdin {
            // A program may end without having read everything, or anything.
            let _ = stdin.write_all(input).await;
            let _ = stdin.shutdown().await;
        }
    };
    let stderr = running.stderr.take();
    let read = async {
        let Some(mut stdout) = stdout else { return Err(Vec::new()) };
        let mut read = Vec::new();
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            match stdout.read(&mut chunk).await {
                Ok(count @ 1..) if read.len() + count <= ANSWER_BYTES_MAX => {
                    read.extend_from_slice(&chunk[..count]);
                    if let Some(answer) = answer_in(&read) {
                        // An unread pipe would block the program that writes to it.
                        tokio::spawn(async move { drain(stdout).await });
                        return Ok(answer);
                    }
                }
                _ => return Err(read),
            }
        }
    };
    let complaints = tokio::spawn(async move {
        let mut text = Vec::new();
        if let Some(mut stderr) = stderr {
            let mut chunk = vec![0; CHUNK_BYTES];
            while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
                let room = COMPLAINTS_BYTES_MAX - text.len();
                text.extend_from_slice(&chunk[..count.min(room)]);
            }
        }
        text
    });
    match tokio::join!(write, read).1 {
        Ok(answer) => FirstAnswer::Whole(answer),
        Err(stdout) => FirstAnswer::None { stdout, stderr: complaints.await.unwrap_or_default() },
    }
}

async fn drain(mut pipe: impl AsyncRead + Unpin) {
    let mut chunk = vec![0; CHUNK_BYTES];
    while let Ok(1..) = pipe.read(&mut chunk).await {}
}

/// The first whole object of the output, if it is an answer. Lines before it are chatter.
fn answer_in(output: &[u8]) -> Option<Value> {
    let text = String::from_utf8_lossy(output);
    let begins = text.match_indices('{').map(|(at, _)| at).take(64);
    begins
        .filter_map(|at| serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>().next()?.ok())
        .find(|value| matches!(value["status"].as_str(), Some("success" | "error")))
}

/// Lets it work on to its end, or to its time limit.
async fn work_on(mut running: ChildProcess, deadline: Instant) {
    if timeout_at(deadline, running.wait()).await.is_err() {
        // Killing continues for processes that cannot be ended yet.
        let _ = running.stop().await;
    }
}

/// Failure of a program that did not exit normally, with its cause.
fn explain_exit(why: String, exit: Result<std::io::Result<ChildExit>, Elapsed>) -> String {
    match exit {
        Ok(Ok(ChildExit { signal: Some(signal), .. })) => format!("it was killed by signal {signal}: {why}"),
        Ok(_) => format!("its exit status is unknown: {why}"),
        Err(_) => format!("it exceeded its time limit and was stopped: {why}"),
    }
}

fn no_answer(plugin: &VcpPlugin, stdout: &[u8], stderr: &[u8]) -> Result<Value, String> {
    let why = match reply::parse_reply(stdout) {
        Err(why) => why,
        Ok(_) => "it ended without a result".to_owned(),
    };
    let complaints = String::from_utf8_lossy(stderr);
    let complaints = plugin.secrets.redact(complaints.trim());
    Err(if complaints.is_empty() { why } else { format!("{why}; stderr: {complaints}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_complete_json_answer_is_used() {
        for (output, expected) in [
            ("{\"status\":\"success\",\"result\":{\"id\":1}}\nmore", Some("success")),
            ("starting {1}\n{\"status\":\"error\",\"error\":\"x\"}", Some("error")),
            ("{\"status\":\"success\",\"res", None),
            ("{\"progress\":1}", None),
            ("", None),
        ] {
            let found = answer_in(output.as_bytes());
            assert_eq!(found.as_ref().and_then(|answer| answer["status"].as_str()), expected, "{output}");
        }
    }
}
