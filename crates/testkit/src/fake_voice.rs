//! A server of OpenAI's audio API: it hums each text, records the requests, and returns a fixed transcript.

use crate::http::{self, FakeConnection, ReceivedRequest};
use crate::voice;
use serde_json::Value;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Bytes of sound in a piece: 20 ms.
const PIECE_BYTES: usize = 960;
/// The transcript of every recording.
const TRANSCRIPT: &str = "What is the weather in Paris?";
/// A text with this in it is begun and never ended, until the client leaves.
const ENDLESS: &str = "endless";
/// A text with this in it is refused.
const REFUSED: &str = "refused";

/// Starts fake voices.
///
/// A text that contains `endless` is begun and never ended; one that contains `refused` is refused with the
/// request's key in the message, as some real servers do.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let voice = throughline_testkit::FakeVoice::start().await?;
/// assert!(voice.base_url().ends_with("/v1"));
/// // ... send `POST {base_url}/audio/speech` there; then see what was asked:
/// assert!(voice.requests().is_empty());
/// # Ok::<(), std::io::Error>(()) })?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct FakeVoice(());

/// A running fake voice. Dropping it stops it.
#[derive(Debug)]
pub struct FakeVoiceHandle {
    address: SocketAddr,
    shared: Arc<VoiceState>,
}

/// A text that a fake voice was asked to speak.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpokenRequest {
    /// The text.
    pub text: String,
    /// The whole body.
    pub body: Value,
    /// The `Authorization` header.
    pub authorization: Option<String>,
}

/// A recording that a fake voice was given to write down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeardRequest {
    /// The body, a form with the recording in it.
    pub form: Vec<u8>,
    /// The `Content-Type` header.
    pub content_type: String,
}

#[derive(Debug)]
struct VoiceState {
    spoken: Mutex<Vec<SpokenRequest>>,
    heard: Mutex<Vec<HeardRequest>>,
    /// Texts whose client left before their end.
    abandoned: watch::Sender<usize>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl FakeVoice {
    /// Starts on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// If no port can be had.
    pub async fn start() -> io::Result<FakeVoiceHandle> {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(VoiceState {
            spoken: Mutex::default(),
            heard: Mutex::default(),
            abandoned: watch::Sender::new(0),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        });
        shared.tasks.spawn(accept(listener, shared.clone()));
        Ok(FakeVoiceHandle { address, shared })
    }
}

impl FakeVoiceHandle {
    /// `http://127.0.0.1:<port>/v1`
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The texts so far.
    pub fn requests(&self) -> Vec<SpokenRequest> {
        lock(&self.shared.spoken).clone()
    }

    /// The recordings so far.
    pub fn recordings(&self) -> Vec<HeardRequest> {
        lock(&self.shared.heard).clone()
    }

    /// Waits until this many texts were abandoned by their clients.
    pub async fn abandoned(&self, count: usize) {
        let mut abandoned = self.shared.abandoned.subscribe();
        // The sender lives as long as this handle.
        let _ = abandoned.wait_for(|seen| *seen >= count).await;
    }
}

impl Drop for FakeVoiceHandle {
    fn drop(&mut self) {
        self.shared.stop.cancel();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, shared: Arc<VoiceState>) {
    loop {
        let accepted = tokio::select! {
            () = shared.stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else { continue };
        let one = shared.clone();
        shared.tasks.spawn(async move {
            let mut connection = FakeConnection { stream, read_ahead: Vec::new() };
            tokio::select! {
                () = one.stop.cancelled() => {}
                () = serve(&mut connection, &one) => {}
            }
        });
    }
}

/// Answers one request after the other, until the client leaves.
async fn serve(connection: &mut FakeConnection, shared: &VoiceState) {
    while let Ok(request) = connection.request().await {
        if answer(connection, &request, shared).await.is_err() {
            return;
        }
    }
}

async fn answer(
    connection: &mut FakeConnection,
    request: &ReceivedRequest,
    shared: &VoiceState,
) -> io::Result<()> {
    match request.path.as_str() {
        "/v1/audio/speech" => speak(connection, request, shared).await,
        "/v1/audio/transcriptions" => {
            let content_type = request.header("content-type").unwrap_or_default().to_owned();
            lock(&shared.heard).push(HeardRequest { form: request.body.clone(), content_type });
            let body = serde_json::json!({ "text": TRANSCRIPT }).to_string();
            write_whole(connection, 200, "application/json", body.as_bytes()).await
        }
        _ => write_whole(connection, 404, "text/html", b"<html><body>not here</body></html>").await,
    }
}

async fn write_whole(
    connection: &mut FakeConnection,
    status: u16,
    content_type: &str,
    body: &[u8],
) -> io::Result<()> {
    let headers = [("content-type".to_owned(), content_type.to_owned())];
    let mut bytes = http::head(status, &headers, Some(body.len()));
    bytes.extend_from_slice(body);
    connection.stream.write_all(&bytes).await
}

async fn speak(
    connection: &mut FakeConnection,
    request: &ReceivedRequest,
    shared: &VoiceState,
) -> io::Result<()> {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let text = body["input"].as_str().unwrap_or_default().to_owned();
    let authorization = request.header("authorization").map(str::to_owned);
    lock(&shared.spoken).push(SpokenRequest {
        text: text.clone(),
        body: body.clone(),
        authorization: authorization.clone(),
    });
    if text.contains(REFUSED) {
        let message = format!("not with {}", authorization.unwrap_or_default());
        let body = serde_json::json!({ "error": { "message": message, "type": "invalid_request_error" } });
        return write_whole(connection, 400, "application/json", body.to_string().as_bytes()).await;
    }
    // The response is always samples, under the requested name.
    let content_type = match body["response_format"].as_str() {
        Some("wav") => "audio/wav",
        Some("pcm") => "audio/pcm",
        _ => "audio/mpeg",
    };
    let headers = [("content-type".to_owned(), content_type.to_owned())];
    connection.stream.write_all(&http::head(200, &headers, None)).await?;
    for piece in voice::hum(&text).chunks(PIECE_BYTES) {
        http::write_chunk(&mut connection.stream, piece).await?;
    }
    if text.contains(ENDLESS) {
        // Nothing more is sent; a read that ends is a client that left.
        let mut rest = [0; 1];
        let _ = connection.stream.read(&mut rest).await;
        shared.abandoned.send_modify(|count| *count += 1);
        return Err(io::ErrorKind::ConnectionAborted.into());
    }
    connection.stream.write_all(b"0\r\n\r\n").await
}
