//! The lines of a server that runs as our child: bounded, and looked at on their way to the SDK.
//!
//! The SDK drops a reply that is too long and leaves the call without an answer, and does not know
//! `execution.taskSupport`. Both are seen here, where the bytes are; the rest is in [`message_filter`](super::message_filter).

use super::listing::TaskOnly;
use super::message_filter::{FilteredMessage, UNREADABLE_REPLY, filter_message};
use serde_json::{Value, json};
use std::io;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};

/// Longest message of a server, in bytes. A longer one is dropped as it comes, and its call fails.
pub const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Length of both ends of a too long message that are retained, to find out whose reply it is.
const END_BYTES: usize = 1_024;

/// Copies lines from the server to the SDK until one of them has disconnected.
pub(crate) async fn pump(
    from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    task_only: TaskOnly,
) -> io::Result<()> {
    let mut from = BufReader::with_capacity(64 * 1024, from);
    let mut line = LineBuffer::default();
    loop {
        let read = from.fill_buf().await?;
        if read.is_empty() {
            return Ok(());
        }
        let newline = read.iter().position(|byte| *byte == b'\n');
        let consumed = newline.map_or(read.len(), |index| index + 1);
        line.push(&read[..consumed]);
        from.consume(consumed);
        if newline.is_some() {
            match std::mem::take(&mut line) {
                LineBuffer::Complete(message) => {
                    task_only.observe(&message);
                    match filter_message(&message) {
                        FilteredMessage::Unchanged => to.write_all(&message).await?,
                        FilteredMessage::Replaced(mut replaced) => {
                            if replaced.last() != Some(&b'\n') {
                                replaced.push(b'\n');
                            }
                            to.write_all(&replaced).await?;
                        }
                        FilteredMessage::Dropped => {}
                    }
                }
                LineBuffer::TooLong { head, tail, size } => {
                    if let Some(answer) = error_reply(&head, &tail, size) {
                        to.write_all(answer.to_string().as_bytes()).await?;
                        to.write_all(b"\n").await?;
                    }
                }
            }
            to.flush().await?;
        }
    }
}

/// A line as far as it has come.
enum LineBuffer {
    Complete(Vec<u8>),
    TooLong { head: Vec<u8>, tail: Vec<u8>, size: usize },
}

impl Default for LineBuffer {
    fn default() -> Self {
        Self::Complete(Vec::new())
    }
}

impl LineBuffer {
    fn push(&mut self, bytes: &[u8]) {
        if let Self::Complete(buffer) = self {
            if buffer.len() + bytes.len() <= MESSAGE_BYTES_MAX {
                buffer.extend_from_slice(bytes);
                return;
            }
            let size = buffer.len();
            let tail = buffer[size.saturating_sub(END_BYTES)..].to_vec();
            buffer.truncate(END_BYTES);
            *self = Self::TooLong { head: std::mem::take(buffer), tail, size };
        }
        if let Self::TooLong { head, tail, size } = self {
            *size += bytes.len();
            head.extend(bytes.iter().take(END_BYTES - head.len()));
            tail.extend_from_slice(&bytes[bytes.len().saturating_sub(END_BYTES)..]);
            tail.drain(..tail.len().saturating_sub(END_BYTES));
        }
    }
}

/// The answer that stands in for a reply which is too long. `None` = it says of no call that it is its reply.
fn error_reply(head: &[u8], tail: &[u8], size: usize) -> Option<Value> {
    let id = leading_id(head).or_else(|| trailing_id(tail))?;
    let message = format!("the reply has {size} bytes, and {MESSAGE_BYTES_MAX} is the limit");
    Some(json!({"jsonrpc": "2.0", "id": id, "error": {"code": UNREADABLE_REPLY, "message": message}}))
}

/// `{"jsonrpc":"2.0","id":7,"result":…`: before anything that could hold an `id` of its own.
fn leading_id(head: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(head);
    let fields = text.split("\"result\"").next()?;
    if fields.matches(['{', '[']).count() != 1 {
        return None;
    }
    parse_id(fields)
}

/// `…},"jsonrpc":"2.0","id":7}`, as the TypeScript SDK writes it.
fn trailing_id(tail: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(tail);
    let text = text.trim_end().strip_suffix('}')?;
    // After the last bracket nothing is nested any more.
    let fields = &text[text.rfind(['}', ']'])? + 1..];
    parse_id(fields)
}

/// Ids are ours, and numbers.
fn parse_id(fields: &str) -> Option<u64> {
    let rest = fields.split("\"id\"").nth(1)?.trim_start().strip_prefix(':')?.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    async fn pumped(input: &[u8]) -> (String, TaskOnly) {
        let (to, mut from) = tokio::io::duplex(1024 * 1024);
        let task_only = TaskOnly::default();
        let mut out = String::new();
        let (copied, read) = tokio::join!(pump(input, to, task_only.clone()), from.read_to_string(&mut out));
        copied.unwrap();
        read.unwrap();
        (out, task_only)
    }

    fn long_reply(front: &str, end: &str) -> Vec<u8> {
        let mut line = front.as_bytes().to_vec();
        line.resize(MESSAGE_BYTES_MAX + 1, b'x');
        line.extend_from_slice(end.as_bytes());
        line.push(b'\n');
        line
    }

    #[tokio::test]
    async fn a_reply_that_is_too_long_fails_its_call_and_nothing_else() {
        let shapes = [
            (r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":""#, r#""}]}}"#, Some(7)),
            (
                r#"{"result":{"content":[{"type":"text","text":""#,
                r#""}]},"jsonrpc":"2.0","id":12}"#,
                Some(12),
            ),
            (r#"{"result":{"id":3,"text":""#, r#""},"jsonrpc":"2.0"}"#, None),
            (
                r#"{"method":"notifications/message","params":{"id":3,"data":""#,
                r#""},"jsonrpc":"2.0"}"#,
                None,
            ),
        ];
        for (front, end, id) in shapes.map(|(front, end, id)| (front, end, id)) {
            let mut input = long_reply(front, end);
            input.extend_from_slice(b"{\"next\":1}\n");
            let (out, _) = pumped(&input).await;
            let mut lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            assert_eq!(lines.pop(), Some(json!({"next": 1})));
            assert_eq!(lines.first().and_then(|line| line["id"].as_u64()), id, "{front}");
            if let Some(line) = lines.first() {
                assert!(line["error"]["message"].as_str().unwrap().contains("is the limit"));
            }
        }
    }

    #[tokio::test]
    async fn other_lines_pass_as_they_are_and_an_unfinished_one_does_not() {
        let input = b"{\"a\":1}\nnot json \xff\n\n{\"torn\"";
        let (out, _) = pumped_lossy(input).await;
        assert_eq!(out, b"{\"a\":1}\nnot json \xff\n\n");
    }

    async fn pumped_lossy(input: &[u8]) -> (Vec<u8>, TaskOnly) {
        let (to, mut from) = tokio::io::duplex(1024);
        let mut out = Vec::new();
        let (copied, read) = tokio::join!(pump(input, to, TaskOnly::default()), from.read_to_end(&mut out));
        copied.unwrap();
        read.unwrap();
        (out, TaskOnly::default())
    }

    #[tokio::test]
    async fn tools_that_run_as_tasks_only_are_noticed() {
        let list = json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": [
            {"name": "research", "execution": {"taskSupport": "required"}},
            {"name": "echo", "execution": {"taskSupport": "optional"}},
            {"name": "add"},
        ]}});
        let (_, task_only) = pumped(format!("{list}\n").as_bytes()).await;
        assert!(task_only.contains("research") && !task_only.contains("echo") && !task_only.contains("add"));
    }
}
