//! Pictures that a provider takes no more of, or not of this size, as notes to the model.
//!
//! A long conversation with screenshots would be refused from some picture on, and every later request of it.

use super::Dialect;
use crate::profile::UpstreamProfile;
use crate::vocabulary::{Media, Message, ModelRequest, UserPart};
use std::borrow::Cow;

/// Longest base64 of a picture: "image exceeds 5 MB maximum: 5272940 bytes > 5242880 bytes" (HTTP 400; daya0576/pi-imessage#5,
/// anthropics/claude-code#19631). Bedrock's 3.75 MB are the same
/// (<https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Message.html>).
const BASE64_BYTES_MAX: usize = 5 * 1024 * 1024;
/// "too many images and documents: 104 + 1 > 100" (HTTP 400; anthropics/claude-code#23392). Some models take 600, and no request
/// says of which kind its model is.
/// Documents, which are PDFs and texts of the user, count as well, and stay.
const PICTURES_MAX: usize = 100;
/// The oldest are left out by so many at once: what a cache holds stays its beginning for as many pictures more.
const LEFT_OUT_AT_ONCE: usize = 20;

/// The request with notes in place of these pictures.
pub(super) fn adapt<'r>(
    dialect: Dialect,
    profile: &UpstreamProfile,
    request: Cow<'r, ModelRequest>,
) -> Cow<'r, ModelRequest> {
    let most = match dialect {
        Dialect::Anthropic | Dialect::BedrockAnthropic => PICTURES_MAX,
        Dialect::BedrockConverse => usize::MAX,
        _ => return request,
    };
    let media = || request.messages.iter().flat_map(Message::media);
    let pictures = || media().filter(|media| media.is_picture());
    let most = most.saturating_sub(request.messages.iter().map(documents).sum());
    let count = pictures().filter(|media| !is_too_large(media)).count();
    if !profile.vision || (count <= most && !pictures().any(is_too_large)) {
        return request;
    }
    let excess = count.saturating_sub(most);
    // The newest are what the user asks about.
    let mut left_out = excess.next_multiple_of(LEFT_OUT_AT_ONCE).min(excess + most / 2);
    let mut request = request.into_owned();
    for message in &mut request.messages {
        message.replace_media(&mut |media| match media {
            _ if !media.is_picture() => None,
            media if is_too_large(media) => Some(media.left_out_note("it is larger than 5 MB in base64")),
            media if left_out > 0 => {
                left_out -= 1;
                Some(media.left_out_note("the conversation has too many"))
            }
            _ => None,
        });
    }
    Cow::Owned(request)
}

/// Documents that a message of the user has.
fn documents(message: &Message) -> usize {
    let Message::User(parts) = message else { return 0 };
    let is_document = |part: &&UserPart| match part {
        UserPart::File { media, .. } => {
            let media_type = media.media_type.as_str();
            media_type.starts_with("text/") || ["application/pdf", "application/json"].contains(&media_type)
        }
        UserPart::Text { .. } | UserPart::Image(_) => false,
    };
    parts.iter().filter(is_document).count()
}

fn is_too_large(media: &Media) -> bool {
    media.data().len() > BASE64_BYTES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A picture of each of these sizes, in base64: the first that is sent, and the number of notes.
    #[track_caller]
    fn check(dialect: Dialect, sizes: &[usize], first_sent: usize, notes: usize) {
        let picture = |size: &usize| UserPart::Image(Media::new("image/png".into(), "A".repeat(*size)));
        let messages = sizes.iter().map(|size| Message::User(vec![picture(size)])).collect();
        let request = ModelRequest { messages, ..ModelRequest::default() };
        let adapted = adapt(dialect, &UpstreamProfile::default(), Cow::Borrowed(&request));
        let is_note = |message: &Message| matches!(message, Message::User(parts) if matches!(&parts[..], [UserPart::Text { text }] if text.contains("left out")));
        let messages = &adapted.messages;
        assert_eq!(messages.iter().position(|message| !is_note(message)), Some(first_sent), "{dialect}");
        assert_eq!(messages.iter().filter(|message| is_note(message)).count(), notes, "{dialect}");
    }

    #[test]
    fn the_oldest_pictures_are_left_out_where_there_are_too_many() {
        for (count, left_out) in [(100, 0), (101, 20), (120, 20), (121, 40)] {
            check(Dialect::Anthropic, &vec![8; count], left_out, left_out);
            check(Dialect::BedrockAnthropic, &vec![8; count], left_out, left_out);
            check(Dialect::BedrockConverse, &vec![8; count], 0, 0);
            check(Dialect::OpenaiChat, &vec![8; count], 0, 0);
        }
    }

    #[test]
    fn documents_count_as_pictures_do_and_stay() {
        let media = |media_type: &str| Media::new(media_type.into(), "AAAA".into());
        for (file, files, pictures, sent) in [
            ("application/pdf", 2, 98, 98),
            ("application/pdf", 2, 99, 79),
            ("text/csv", 90, 11, 5),
            // What is no document becomes words.
            ("audio/wav", 90, 11, 11),
        ] {
            let parts = (0..pictures).map(|_| UserPart::Image(media("image/png")));
            let of_files = (0..files).map(|_| UserPart::File { name: "a".into(), media: media(file) });
            let messages = vec![Message::User(parts.chain(of_files).collect())];
            let request = ModelRequest { messages, ..ModelRequest::default() };
            let adapted = adapt(Dialect::Anthropic, &UpstreamProfile::default(), Cow::Borrowed(&request));
            let (pictures, files_left): (Vec<_>, Vec<_>) =
                adapted.messages.iter().flat_map(Message::media).partition(|media| media.is_picture());
            assert_eq!((pictures.len(), files_left.len()), (sent, files), "{file}");
        }
    }

    #[test]
    fn a_picture_that_is_too_large_is_left_out_and_not_counted() {
        for dialect in [Dialect::Anthropic, Dialect::BedrockAnthropic, Dialect::BedrockConverse] {
            check(dialect, &[BASE64_BYTES_MAX + 4, BASE64_BYTES_MAX, 8], 1, 1);
        }
        check(Dialect::OpenaiChat, &[BASE64_BYTES_MAX + 4], 0, 0);
        let mut sizes = vec![8; 100];
        sizes.push(BASE64_BYTES_MAX + 4);
        check(Dialect::Anthropic, &sizes, 0, 1);
    }
}
