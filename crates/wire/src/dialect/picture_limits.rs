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
/// "too many images and documents: 104 + 1 > 100" (HTTP 400; anthropics/claude-code#23392). Some models
/// accept 600, and a request does not show if its model does. Documents, which are PDFs and texts of the
/// user, count as well, and stay.
const PICTURES_MAX: usize = 100;
/// Longest side: "At least one of the image dimensions exceed max allowed size: 8000 pixels" (HTTP 400;
/// anthropics/claude-code#5147). At Converse it holds for every model
/// (aws-solutions-library-samples/accelerated-intelligent-document-processing-on-aws#994).
const SIDE_MAX: u32 = 8_000;
/// More pictures than these are many, all of the request counted (charmbracelet/crush#3810, which quotes
/// <https://platform.claude.com/docs/en/build-with-claude/vision>).
const FEW_PICTURES: usize = 20;
/// Longest side where they are many, of each of them: "At least one of the image dimensions exceed max allowed size for many-image requests: 2000
/// pixels" (HTTP 400; anthropics/claude-code#24630). At Bedrock 2,001 are refused and 2,000 taken (the same #994).
const SIDE_OF_MANY_MAX: u32 = 2_000;
/// A request may have 32 MB ("Request exceeds the maximum size", HTTP 413; anthropics/anthropic-sdk-python#938), of which 4 MB,
/// about a million tokens, are left for text.
const ANTHROPIC_BYTES_MAX: usize = 28_000_000;
/// At `InvokeModel` a body may have 25,000,000 bytes (langchain-ai/langchain-aws#419). Converse took 19.1 MB and refused 27.7 MB
/// ("Input is too long for requested model", which would cost the history its beginning; the same #994).
const BEDROCK_BYTES_MAX: usize = 20_000_000;
/// Number of pictures that are left out together, the oldest first: so the cached beginning stays valid for
/// as many more pictures.
const LEFT_OUT_AT_ONCE: usize = 20;

/// The request with notes instead of these pictures.
pub(super) fn adapt<'r>(
    dialect: Dialect,
    profile: &UpstreamProfile,
    request: Cow<'r, ModelRequest>,
) -> Cow<'r, ModelRequest> {
    let media = || request.messages.iter().flat_map(Message::media);
    if !profile.vision || !media().any(Media::is_picture) {
        return request;
    }
    let limits = PictureLimits::of(dialect, profile, &request);
    let pictures: Vec<&Media> = media().filter(|media| media.is_picture()).collect();
    let reasons = limits.left_out(&pictures);
    if reasons.iter().all(Option::is_none) {
        return request;
    }
    let mut reasons = reasons.into_iter();
    let mut request = request.into_owned();
    for message in &mut request.messages {
        message.replace_media(&mut |media| {
            let why = if media.is_picture() { reasons.next()? } else { None };
            why.map(|why| media.left_out_note(&why))
        });
    }
    Cow::Owned(request)
}

/// Limits of the pictures of one request.
struct PictureLimits {
    count: usize,
    /// Longest base64 of one.
    base64: usize,
    /// Most bytes of base64 of all pictures.
    total: usize,
    side: u32,
    side_of_many: u32,
}

impl PictureLimits {
    fn of(dialect: Dialect, profile: &UpstreamProfile, request: &ModelRequest) -> Self {
        let (count, base64, total, side) = match dialect {
            Dialect::Anthropic => (PICTURES_MAX, BASE64_BYTES_MAX, ANTHROPIC_BYTES_MAX, SIDE_MAX),
            Dialect::BedrockAnthropic => (PICTURES_MAX, BASE64_BYTES_MAX, BEDROCK_BYTES_MAX, SIDE_MAX),
            Dialect::BedrockConverse => (usize::MAX, BASE64_BYTES_MAX, BEDROCK_BYTES_MAX, SIDE_MAX),
            _ => (usize::MAX, usize::MAX, usize::MAX, u32::MAX),
        };
        let may_be_claude = match dialect {
            Dialect::Anthropic | Dialect::BedrockAnthropic => true,
            Dialect::BedrockConverse => may_be_claude(&request.model),
            _ => false,
        };
        let mut limits = Self { count, base64, total, side, side_of_many: u32::MAX };
        if may_be_claude && profile.pictures_max != Some(0) {
            limits.side_of_many = SIDE_OF_MANY_MAX;
        }
        match profile.pictures_max {
            None => {}
            Some(0) => limits.count = usize::MAX,
            Some(most) => limits.count = most as usize,
        }
        match profile.picture_base64_max {
            None => {}
            Some(0) => (limits.base64, limits.total, limits.side) = (usize::MAX, usize::MAX, u32::MAX),
            Some(most) => limits.base64 = most as usize,
        }
        // Converse is sent none.
        if matches!(dialect, Dialect::Anthropic | Dialect::BedrockAnthropic) {
            for document in request.messages.iter().flat_map(documents) {
                limits.count = limits.count.saturating_sub(1);
                limits.total = limits.total.saturating_sub(document.base64_bytes());
            }
        }
        limits
    }

    /// For each picture, from the oldest, the reason why it is left out, if any.
    ///
    /// The user asks about the newest pictures, so of those that fit together the newest stay. With a large
    /// one among the newest 20 only these are sent, since it may have no more than 19 others; a large one
    /// that is older is left out alone, since sending it would cost all but 20.
    fn left_out(&self, pictures: &[&Media]) -> Vec<Option<String>> {
        let sides: Vec<u32> = pictures.iter().map(|picture| self.longest_side(picture)).collect();
        let mut reasons: Vec<Option<String>> =
            pictures.iter().zip(&sides).map(|(picture, side)| self.own_fault(picture, *side)).collect();
        let mut sent: Vec<usize> = (0..pictures.len()).filter(|at| reasons[*at].is_none()).collect();
        let mut start = self.start(pictures, &sent);
        if sent.len() - start > FEW_PICTURES {
            let is_large = |at: &usize| sides[*at] > self.side_of_many;
            let few = number_left_out(sent.len(), FEW_PICTURES);
            if sent[few..].iter().any(is_large) {
                start = few;
            } else {
                for at in sent.extract_if(.., |at| is_large(at)) {
                    reasons[at] = Some(format!(
                        "in a request with more than {FEW_PICTURES} pictures, none may have more than \
                         {SIDE_OF_MANY_MAX} pixels on a side"
                    ));
                }
                start = self.start(pictures, &sent);
            }
        }
        for at in &sent[..start] {
            reasons[*at] = Some("the request would be too large".to_owned());
        }
        reasons
    }

    /// Longest side in pixels; zero if no limit needs it, or if the picture's header does not have it.
    fn longest_side(&self, picture: &Media) -> u32 {
        if self.side == u32::MAX {
            return 0;
        }
        picture.pixel_size().map_or(0, |(width, height)| width.max(height))
    }

    /// Reason why this picture is refused in any request.
    fn own_fault(&self, picture: &Media, side: u32) -> Option<String> {
        if picture.base64_bytes() > self.base64 {
            return Some(format!("it has more than {} bytes in base64", self.base64));
        }
        (side > self.side).then(|| format!("it has more than {} pixels on a side", self.side))
    }

    /// Number of the oldest that are left out of a request, so that the others fit into it.
    fn start(&self, pictures: &[&Media], sent: &[usize]) -> usize {
        let by_count = number_left_out(sent.len(), self.count);
        let sizes = || sent.iter().map(|at| pictures[*at].base64_bytes());
        // A quarter at a time, for the sake of a cache.
        let bytes =
            sizes().sum::<usize>().saturating_sub(self.total).next_multiple_of((self.total / 4).max(1));
        let mut before = 0;
        let by_bytes = sizes().take_while(|size| {
            let is_left_out = before < bytes;
            before += size;
            is_left_out
        });
        // The user asks about the newest one, so it stays in any case.
        by_count.max(by_bytes.count().min(sent.len().saturating_sub(1)))
    }
}

/// True for a model at Converse whose name is of Claude, or unknown.
fn may_be_claude(model: &str) -> bool {
    const OPAQUE: [&str; 3] = [":application-inference-profile/", ":provisioned-model/", ":prompt/"];
    model.contains("claude") || OPAQUE.iter().any(|kind| model.contains(kind))
}

/// Number of the oldest of `count` pictures that are left out, where `most` may be sent.
fn number_left_out(count: usize, most: usize) -> usize {
    // The fewer are sent, the more each of them matters.
    let at_once = (most / 4).clamp(1, LEFT_OUT_AT_ONCE);
    count.saturating_sub(most).next_multiple_of(at_once).min(count)
}

/// Documents that a message of the user has.
fn documents(message: &Message) -> impl Iterator<Item = &Media> {
    let parts = if let Message::User(parts) = message { &parts[..] } else { &[] };
    parts.iter().filter_map(|part| match part {
        UserPart::File { media, .. } => {
            let media_type = media.media_type.as_str();
            let is_document = media_type.starts_with("text/")
                || ["application/pdf", "application/json"].contains(&media_type);
            is_document.then_some(media)
        }
        UserPart::Text { .. } | UserPart::Image(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD as BASE64;

    /// A PNG of this width and nothing else.
    fn png(width: u32) -> Media {
        let header = [b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR", &width.to_be_bytes()[..], b"\0\0\0\x0A"].concat();
        Media::new("image/png".into(), BASE64.encode(header))
    }

    /// A picture of this much base64, without a size in it.
    fn of_bytes(length: usize) -> Media {
        Media::new("image/png".into(), "A".repeat(length))
    }

    fn asking(model: &str, pictures: Vec<Media>) -> ModelRequest {
        let messages = pictures.into_iter().map(|picture| Message::User(vec![UserPart::Image(picture)]));
        ModelRequest { model: model.into(), messages: messages.collect(), ..ModelRequest::default() }
    }

    /// Pictures that are sent, by number from the oldest, 0. Each of the others is replaced by a note.
    #[track_caller]
    fn sent(dialect: Dialect, profile: &UpstreamProfile, request: &ModelRequest) -> Vec<usize> {
        let adapted = adapt(dialect, profile, Cow::Borrowed(request));
        let mut sent = Vec::new();
        for (at, message) in adapted.messages.iter().enumerate() {
            let Message::User(parts) = message else { panic!("a step") };
            match &parts[..] {
                [UserPart::Image(_)] => sent.push(at),
                [UserPart::Text { text }] if text.contains("left out") => {}
                others => panic!("{others:?}"),
            }
        }
        sent
    }

    #[track_caller]
    fn check(dialect: Dialect, pictures: Vec<Media>, expected: impl IntoIterator<Item = usize>) {
        let request = asking("anthropic.claude", pictures);
        let expected: Vec<usize> = expected.into_iter().collect();
        assert_eq!(sent(dialect, &UpstreamProfile::default(), &request), expected, "{dialect}");
    }

    const CLAUDE: [Dialect; 3] = [Dialect::Anthropic, Dialect::BedrockAnthropic, Dialect::BedrockConverse];

    #[test]
    fn oldest_pictures_over_the_limit_are_left_out() {
        for (count, left_out) in [(100, 0), (101, 20), (120, 20), (121, 40)] {
            check(Dialect::Anthropic, vec![png(10); count], left_out..count);
            check(Dialect::BedrockAnthropic, vec![png(10); count], left_out..count);
            check(Dialect::BedrockConverse, vec![png(10); count], 0..count);
            check(Dialect::OpenaiChat, vec![png(10); count], 0..count);
        }
    }

    #[test]
    fn picture_over_the_side_limit_is_left_out() {
        for dialect in CLAUDE {
            check(dialect, vec![png(8_001), png(8_000), png(10)], [1, 2]);
        }
        check(Dialect::OpenaiChat, vec![png(8_001)], [0]);
    }

    #[test]
    fn claude_gets_at_most_twenty_pictures_if_one_is_large() {
        let (small, large) = (|count| vec![png(2_000); count], |count| vec![png(2_001); count]);
        for dialect in CLAUDE {
            check(dialect, large(20), 0..20);
            check(dialect, large(25), 5..25);
            check(dialect, large(26), 10..26);
            check(dialect, small(25), 0..25);
            // The user asks about the newest one.
            check(dialect, [small(24), large(1)].concat(), 5..25);
            // An old one is not worth all the small ones that it would cost.
            check(dialect, [large(2), small(24)].concat(), 2..26);
            check(dialect, [small(9), large(2), small(24)].concat(), (0..9).chain(11..35));
        }
        check(Dialect::Anthropic, [large(1), small(100)].concat(), 1..101);
        check(Dialect::Gemini, large(25), 0..25);
    }

    #[test]
    fn bedrock_models_other_than_claude_get_all_large_pictures() {
        for (model, oldest) in [
            ("amazon.nova-pro-v1:0", 0),
            ("arn:aws:bedrock:us-east-1:1:inference-profile/us.amazon.nova-pro-v1:0", 0),
            ("us.anthropic.claude-x", 5),
            ("arn:aws:bedrock:us-east-1:1:application-inference-profile/x", 5),
        ] {
            let request = asking(model, vec![png(2_001); 25]);
            let sent = sent(Dialect::BedrockConverse, &UpstreamProfile::default(), &request);
            assert_eq!(sent, (oldest..25).collect::<Vec<_>>(), "{model}");
        }
    }

    #[test]
    fn newest_pictures_that_fit_the_request_are_sent() {
        for (dialect, count, oldest) in [
            (Dialect::Anthropic, 5, 0),
            // Fewer than would fit, so that the next ones move nothing.
            (Dialect::Anthropic, 7, 3),
            (Dialect::Anthropic, 8, 3),
            (Dialect::Anthropic, 9, 5),
            (Dialect::BedrockAnthropic, 4, 1),
            (Dialect::BedrockConverse, 4, 1),
            (Dialect::OpenaiChat, 7, 0),
        ] {
            check(dialect, vec![of_bytes(BASE64_BYTES_MAX); count], oldest..count);
        }
        let mut request = asking("m", vec![of_bytes(BASE64_BYTES_MAX); 4]);
        let file = UserPart::File {
            name: "a.pdf".into(),
            media: Media::new("application/pdf".into(), "A".repeat(9_000_000)),
        };
        let Message::User(parts) = &mut request.messages[3] else { panic!("a step") };
        parts.push(file);
        let adapted = adapt(Dialect::Anthropic, &UpstreamProfile::default(), Cow::Borrowed(&request));
        let left =
            adapted.messages.iter().flat_map(Message::media).filter(|media| media.is_picture()).count();
        assert_eq!(left, 3, "a document takes room as well");
    }

    #[test]
    fn profile_overrides_picture_limits() {
        let profile = |pictures_max, picture_base64_max| UpstreamProfile {
            pictures_max,
            picture_base64_max,
            ..UpstreamProfile::default()
        };
        let (few, many) = (asking("m", vec![png(10); 21]), asking("m", vec![png(10); 121]));
        let large = asking("m", vec![of_bytes(BASE64_BYTES_MAX + 4), of_bytes(8)]);
        for (dialect, profile, request, oldest) in [
            (Dialect::Anthropic, profile(Some(20), None), &few, 5),
            (Dialect::BedrockConverse, profile(Some(20), None), &few, 5),
            (Dialect::OpenaiChat, profile(Some(20), None), &few, 5),
            (Dialect::Anthropic, profile(Some(600), None), &many, 0),
            (Dialect::Anthropic, profile(Some(0), None), &many, 0),
            (Dialect::Anthropic, profile(None, None), &many, 40),
            (Dialect::Anthropic, profile(None, Some(10_000_000)), &large, 0),
            (Dialect::Anthropic, profile(None, Some(0)), &large, 0),
            (Dialect::Anthropic, profile(None, None), &large, 1),
            (Dialect::OpenaiChat, profile(None, Some(1_000)), &large, 1),
        ] {
            let expected: Vec<usize> = (oldest..request.messages.len()).collect();
            assert_eq!(sent(dialect, &profile, request), expected, "{dialect} {profile:?}");
        }
        let blind = UpstreamProfile { vision: false, ..profile(Some(20), None) };
        assert_eq!(sent(Dialect::Anthropic, &blind, &few).len(), 21, "they become notes of another kind");
    }

    #[test]
    fn documents_count_as_pictures_but_are_never_left_out() {
        let media = |media_type: &str| Media::new(media_type.into(), "AAAA".into());
        for (file, files, pictures, sent) in [
            ("application/pdf", 2, 98, 98),
            ("application/pdf", 2, 99, 79),
            ("text/csv", 90, 11, 9),
            // Media that are not documents become notes.
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
    fn oversized_picture_is_left_out_and_not_counted() {
        for dialect in CLAUDE {
            check(dialect, [BASE64_BYTES_MAX + 4, BASE64_BYTES_MAX, 8].map(of_bytes).to_vec(), [1, 2]);
        }
        check(Dialect::OpenaiChat, vec![of_bytes(BASE64_BYTES_MAX + 4)], [0]);
        let mut pictures = vec![png(10); 100];
        pictures.push(of_bytes(BASE64_BYTES_MAX + 4));
        pictures.push(png(9_000));
        check(Dialect::Anthropic, pictures, 0..100);
    }
}
