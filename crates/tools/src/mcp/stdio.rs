//! The lines of a server that runs as our child: bounded, and read by us on their way to the SDK.
//!
//! The SDK drops a reply that is too long or that it cannot read, and leaves the call without an answer. Both are seen here,
//! where the bytes are.

use super::lenient::{MessageOrigin, MessageReader};
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use std::io;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader, Empty};
use tokio::sync::mpsc;

/// Longest message of a server, in bytes. A longer one is dropped as it comes, and its call fails.
pub const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Length of both ends of a too long message that are retained, to find out whose reply it is.
const END_BYTES: usize = 1_024;
/// Messages that wait for the SDK. While they do, the server waits, too.
const MESSAGES_QUEUED_MAX: usize = 16;

/// A program's standard input and output as a connection of the SDK.
pub(crate) struct StdioTransport<W: AsyncWrite> {
    /// Writing half only.
    writer: AsyncRwTransport<RoleClient, Empty, W>,
    messages: mpsc::Receiver<ServerJsonRpcMessage>,
    reader: MessageReader,
}

impl<W: AsyncWrite + Send + Unpin + 'static> StdioTransport<W> {
    /// The connection, and what reads for it: the connection has ended when that ends.
    pub(crate) fn new(
        stdout: impl AsyncRead + Unpin + Send + 'static,
        stdin: W,
        reader: MessageReader,
    ) -> (Self, impl Future<Output = io::Result<()>> + Send + 'static) {
        let (sender, messages) = mpsc::channel(MESSAGES_QUEUED_MAX);
        let writer = AsyncRwTransport::new_client(tokio::io::empty(), stdin);
        let reading = read_lines(stdout, sender, reader.clone());
        (Self { writer, messages, reader }, reading)
    }
}

impl<W: AsyncWrite + Send + Unpin + 'static> Transport<RoleClient> for StdioTransport<W> {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        // Registered before sending: a reply must not arrive for an unknown request.
        self.reader.sent(&message);
        self.writer.send(message)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.messages.recv().await
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.writer.close().await
    }
}

/// Reads lines for the SDK until the server or the SDK has disconnected.
async fn read_lines(
    from: impl AsyncRead + Unpin,
    to: mpsc::Sender<ServerJsonRpcMessage>,
    reader: MessageReader,
) -> io::Result<()> {
    let mut from = BufReader::with_capacity(64 * 1024, from);
    let mut line = LineBuffer::default();
    loop {
        let read = tokio::select! {
            read = from.fill_buf() => read?,
            () = to.closed() => return Ok(()),
        };
        if read.is_empty() {
            return Ok(());
        }
        let newline = read.iter().position(|byte| *byte == b'\n');
        let consumed = newline.map_or(read.len(), |index| index + 1);
        line.push(&read[..consumed]);
        from.consume(consumed);
        if newline.is_some() {
            let messages = match std::mem::take(&mut line) {
                LineBuffer::Complete(message) => reader.read(&message, &MessageOrigin::Pipe),
                LineBuffer::TooLong { head, tail, size } => {
                    let problem =
                        format!("the reply has {size} bytes, more than the limit of {MESSAGE_BYTES_MAX}");
                    reader.too_long((&head, &tail), &problem, &MessageOrigin::Pipe)
                }
            };
            for message in messages {
                if to.send(message).await.is_err() {
                    return Ok(());
                }
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, JsonRpcMessage, RequestId};

    /// Replies to these calls that a server's output comes to: number and, of an error, message.
    async fn check(calls: &[i64], output: Vec<u8>, expected: &[(i64, &str)]) {
        let reader = MessageReader::default();
        for id in calls {
            let call = CallToolRequest::new(CallToolRequestParams::new("echo"));
            reader
                .sent(&JsonRpcMessage::request(ClientRequest::CallToolRequest(call), RequestId::Number(*id)));
        }
        let (sender, mut messages) = mpsc::channel(100);
        read_lines(&output[..], sender, reader).await.unwrap();
        let mut replies = Vec::new();
        while let Some(message) = messages.recv().await {
            let (reply, id) = message.into_result().expect("no reply");
            replies.push((
                id.unwrap().to_string(),
                reply.err().map_or_else(String::new, |error| error.message.into()),
            ));
        }
        let expected: Vec<_> =
            expected.iter().map(|(id, message)| (id.to_string(), (*message).to_owned())).collect();
        assert_eq!(replies, expected);
    }

    fn long_reply(front: &str, end: &str) -> Vec<u8> {
        let mut line = front.as_bytes().to_vec();
        line.resize(MESSAGE_BYTES_MAX + 1, b'x');
        line.extend_from_slice(end.as_bytes());
        line.push(b'\n');
        line
    }

    #[tokio::test]
    async fn oversized_reply_fails_only_its_own_call() {
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
        for (front, end, id) in shapes {
            let mut output = long_reply(front, end);
            let size = output.len();
            output.extend_from_slice(b"{\"id\":1,\"result\":{}}\n");
            let error = format!("the reply has {size} bytes, more than the limit of {MESSAGE_BYTES_MAX}");
            let mut expected: Vec<(i64, &str)> = id.map(|id| (id, error.as_str())).into_iter().collect();
            expected.push((1, ""));
            check(&[1, 3, 7, 12], output, &expected).await;
        }
    }

    #[tokio::test]
    async fn reply_must_be_a_complete_line() {
        let output = b"{\"id\":1,\"result\":{}}\nnot json \xff\n\r\n{\"id\":2,\"result\":{}}\r\n{\"id\":3,\"result\":{}}";
        check(&[1, 2, 3], output.to_vec(), &[(1, ""), (2, "")]).await;
    }
}
