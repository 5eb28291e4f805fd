//! Files in the request of a model call: each is read from its store while the request is sent and replaces a
//! placeholder, so that a request with many large pictures needs no more memory than its text.

use crate::media::{MediaError, MediaReader, MediaStore};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::{Stream, stream};
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::Arc;
use throughline_wire::{Media, MediaContent, MediaPlaceholder, ModelRequest};
use tokio::io::AsyncReadExt;

/// Bytes of a picture in which its size is looked for. One with more in front of it (EXIF, profiles of color) is in memory while
/// it is sent.
const HEAD_BYTES: usize = 256 << 10;
/// Bytes of a file that are sent in one piece: a multiple of three, so that the base64 of the pieces can be
/// joined.
const CHUNK_BYTES: usize = 48 << 10;

/// A request with its files opened.
#[derive(Debug)]
pub(crate) struct HydratedRequest {
    pub request: Box<ModelRequest>,
    /// Files that the request's placeholders refer to.
    pub files: RequestFiles,
}

impl From<ModelRequest> for HydratedRequest {
    /// Converts a request without files.
    fn from(request: ModelRequest) -> Self {
        Self { request: Box::new(request), files: RequestFiles::default() }
    }
}

/// The files of one request.
#[derive(Clone, Default)]
pub(crate) struct RequestFiles {
    /// Prefix of every placeholder of this request. Random and new for each request, so that no text can
    /// contain it.
    prefix: String,
    files: Vec<RequestFile>,
    source: Option<FileSource>,
}

#[derive(Clone)]
struct RequestFile {
    file_id: String,
    bytes: u64,
}

#[derive(Clone)]
struct FileSource {
    store: Arc<dyn MediaStore>,
    user: Option<String>,
}

impl fmt::Debug for RequestFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestFiles").field("files", &self.files.len()).finish_non_exhaustive()
    }
}

impl RequestFiles {
    pub(crate) fn of(store: Arc<dyn MediaStore>, user: Option<String>) -> Self {
        let prefix = format!("tl-file.{}.", uuid::Uuid::now_v7().simple());
        Self { prefix, files: Vec::new(), source: Some(FileSource { store, user }) }
    }

    /// Adds a placeholder for an opened file. `Some` = the encoder needs the content itself.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) async fn add(
        &mut self,
        media: &mut Media,
        file_id: String,
        opened: MediaReader,
    ) -> Result<Option<Vec<u8>>, MediaError> {
        let MediaReader { bytes, mut content } = opened;
        let mut read = Vec::new();
        (&mut content).take(HEAD_BYTES as u64).read_to_end(&mut read).await.map_err(unreadable)?;
        let text = format!("{}{}.", self.prefix, self.files.len());
        match MediaPlaceholder::new(text, &media.media_type, bytes, &read) {
            Some(placeholder) => {
                media.content = MediaContent::Placeholder(placeholder);
                self.files.push(RequestFile { file_id, bytes });
                Ok(None)
            }
            None => {
                content.read_to_end(&mut read).await.map_err(unreadable)?;
                Ok(Some(read))
            }
        }
    }

    /// A request's body: this JSON, with files in place of their placeholders. Its length in bytes is known
    /// in advance.
    pub(crate) fn body(&self, json: String) -> (reqwest::Body, u64) {
        let Some(source) = self.source.clone().filter(|_| !self.files.is_empty()) else {
            let bytes = json.len() as u64;
            return (json.into(), bytes);
        };
        let pieces = self.pieces(&json);
        let bytes = pieces.iter().map(BodyPiece::bytes).sum();
        (reqwest::Body::wrap_stream(body_stream(source, pieces)), bytes)
    }

    fn pieces(&self, json: &str) -> VecDeque<BodyPiece> {
        let mut pieces = VecDeque::new();
        let mut sent = 0;
        for (at, _) in json.match_indices(&self.prefix) {
            let number = &json[at + self.prefix.len()..];
            let Some((number, _)) = number.split_once('.') else { continue };
            let Some(file) = number.parse().ok().and_then(|number: usize| self.files.get(number)) else {
                continue;
            };
            pieces.push_back(BodyPiece::Json(json[sent..at].to_owned()));
            pieces.push_back(BodyPiece::File(file.clone()));
            sent = at + self.prefix.len() + number.len() + 1;
        }
        pieces.push_back(BodyPiece::Json(json[sent..].to_owned()));
        pieces
    }
}

enum BodyPiece {
    Json(String),
    File(RequestFile),
}

impl BodyPiece {
    fn bytes(&self) -> u64 {
        match self {
            Self::Json(text) => text.len() as u64,
            Self::File(file) => base64_bytes(file.bytes),
        }
    }
}

fn base64_bytes(bytes: u64) -> u64 {
    bytes.div_ceil(3).saturating_mul(4)
}

/// A body that is being sent.
struct SentBody {
    source: FileSource,
    pieces: VecDeque<BodyPiece>,
    file: Option<SentFile>,
}

struct SentFile {
    reader: MediaReader,
    unread: u64,
}

fn body_stream(
    source: FileSource,
    pieces: VecDeque<BodyPiece>,
) -> impl Stream<Item = Result<String, io::Error>> + Send + 'static {
    stream::try_unfold(SentBody { source, pieces, file: None }, |mut body| async move {
        Ok(body.next().await?.map(|chunk| (chunk, body)))
    })
}

impl SentBody {
    async fn next(&mut self) -> io::Result<Option<String>> {
        loop {
            if let Some(file) = self.file.as_mut().filter(|file| file.unread > 0) {
                return file.next().await.map(Some);
            }
            match self.pieces.pop_front() {
                None => return Ok(None),
                Some(BodyPiece::Json(text)) => return Ok(Some(text)),
                Some(BodyPiece::File(RequestFile { file_id, bytes })) => {
                    let FileSource { store, user } = &self.source;
                    let opened = store.open(user.as_deref(), &file_id).await.map_err(io::Error::other)?;
                    // The length of the whole has been sent.
                    let reader = opened.filter(|opened| opened.bytes == bytes).ok_or_else(|| {
                        io::Error::other(format!(
                            "the file {file_id} changed while the request was being sent"
                        ))
                    })?;
                    self.file = Some(SentFile { reader, unread: bytes });
                }
            }
        }
    }
}

impl SentFile {
    async fn next(&mut self) -> io::Result<String> {
        let length = usize::try_from(self.unread).unwrap_or(usize::MAX).min(CHUNK_BYTES);
        let mut chunk = vec![0; length];
        self.reader.content.read_exact(&mut chunk).await?;
        self.unread -= length as u64;
        Ok(STANDARD.encode(chunk))
    }
}

fn unreadable(error: io::Error) -> MediaError {
    MediaError(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::MediaOwner;
    use async_trait::async_trait;
    use futures_util::TryStreamExt;

    /// Files by their id; the first has the declared number of bytes.
    struct Files(Vec<(&'static str, Vec<u8>)>);

    #[async_trait]
    impl MediaStore for Files {
        fn inline_bytes_max(&self) -> u64 {
            0
        }

        async fn save(&self, _: &MediaOwner, _: &str, _: Vec<u8>) -> Result<String, MediaError> {
            Err(MediaError("nothing is saved here".to_owned()))
        }

        async fn read(&self, _: Option<&str>, file_id: &str) -> Result<Option<Vec<u8>>, MediaError> {
            Ok(self.0.iter().find(|(id, _)| *id == file_id).map(|(_, bytes)| bytes.clone()))
        }
    }

    async fn sent(store: Files, write: impl FnOnce(&[String]) -> String) -> Result<String, io::Error> {
        let store = Arc::new(store);
        let mut files = RequestFiles::of(store.clone(), None);
        let mut texts = Vec::new();
        for (id, _) in &store.0 {
            let opened = store.open(None, id).await.unwrap().unwrap();
            let mut media = Media::stored("audio/wav".into(), (*id).to_owned(), 0);
            assert_eq!(files.add(&mut media, (*id).to_owned(), opened).await.unwrap(), None);
            texts.push(media.data().to_owned());
        }
        let json = write(&texts);
        let pieces = files.pieces(&json);
        let length: u64 = pieces.iter().map(BodyPiece::bytes).sum();
        let body: String = body_stream(files.source.unwrap(), pieces).try_collect().await?;
        assert_eq!(body.len() as u64, length, "the length that is said in front");
        Ok(body)
    }

    #[tokio::test]
    async fn placeholders_are_replaced_by_file_contents() {
        let large: Vec<u8> = (0..CHUNK_BYTES * 2 + 1).map(|at| at as u8).collect();
        let files = || Files(vec![("a", b"hello".to_vec()), ("b", large.clone()), ("c", Vec::new())]);
        let [a, b] = [b"hello".as_slice(), &large].map(|bytes| STANDARD.encode(bytes));
        let body = sent(files(), |texts| {
            let [a, b, c] = texts else { panic!("{texts:?}") };
            format!("[\"data:audio/wav;base64,{b}\",\"{a}\",\"{c}\",\"{a}\"]")
        });
        assert_eq!(body.await.unwrap(), format!("[\"data:audio/wav;base64,{b}\",\"{a}\",\"\",\"{a}\"]"));
        assert_eq!(sent(files(), |_| "no file".into()).await.unwrap(), "no file");
    }

    #[tokio::test]
    async fn text_resembling_a_placeholder_is_not_replaced() {
        let files = Files(vec![("a", b"hello".to_vec())]);
        let body = sent(files, |texts| {
            let (start, _) = texts[0].split_at(texts[0].len() - 2);
            format!("tl-file.0. {start}7. {start}x {start}")
        });
        assert!(!body.await.unwrap().contains(&STANDARD.encode("hello")));
    }
}
