use super::super::error_body;
use super::super::failure::{self, ToolsInRequest, UpstreamErrorResponse};
use super::*;
use FailureKind as K;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

fn classify(status: u16, body: &str) -> K {
    let response = UpstreamErrorResponse { status, retry_after: None, retry_after_ms: None, body, now: 0 };
    failure::from_response(&response, ToolsInRequest::Present).kind
}

/// The row that counts for an example.
fn found(rule: &FailureRule) -> Option<&'static FailureRule> {
    let (status, body) = rule.example;
    find((status != 200).then_some(status), &error_body::parse(body))
}

#[test]
fn every_rule_classifies_its_example() {
    for rule in all() {
        let (status, body) = rule.example;
        let (provider, error) = (rule.provider, error_body::parse(body));
        assert!(rule.fits((status != 200).then_some(status), &error), "{provider}: {body}");
        assert_eq!(found(rule).map(|found| found.kind), Some(rule.kind), "{provider}: {body}");
        if status != 200 {
            assert_eq!(classify(status, body), rule.kind, "{provider}: {body}");
        }
        assert!(!error.message.is_empty() && error.message != body, "{provider} has no words: {body}");
    }
}

#[test]
fn every_rule_has_a_source_and_valid_conditions() {
    let providers: BTreeSet<&str> = all().map(|rule| rule.provider).collect();
    assert!(providers.len() >= 20, "{providers:?}");
    for rule in all() {
        assert!(rule.source.starts_with("https://") && !rule.source.contains(' '), "{}", rule.source);
        assert!(!(rule.statuses.is_empty() && rule.by_status()));
        for words in rule.words {
            assert_eq!(*words, words.to_lowercase(), "{}", rule.provider);
            // Short phrases occur in other errors by chance; Chinese needs fewer letters.
            assert!(words.len() >= 12, "{}: {words}", rule.provider);
        }
        for message in rule.messages {
            assert_eq!(*message, message.trim_end_matches('.').to_lowercase(), "{}", rule.provider);
        }
    }
}

/// Every class has rows of several providers.
#[test]
fn every_failure_kind_has_rules_of_five_providers() {
    let kinds = [
        K::ContextTooLong,
        K::QuotaExhausted,
        K::RateLimited,
        K::Unauthorized,
        K::NotAllowed,
        K::ModelNotFound,
        K::ContentFiltered,
        K::Overloaded,
        K::Status,
    ];
    for kind in kinds {
        let providers: BTreeSet<_> =
            all().filter(|rule| rule.kind == kind).map(|rule| rule.provider).collect();
        assert!(providers.len() >= 5, "{kind:?}: {providers:?}");
    }
}

/// Errors that resemble another class.
#[test]
fn ordinary_errors_keep_the_class_of_their_status() {
    let cases = [
        (429, r#"{"error":{"message":"slow down","type":"requests"}}"#, K::RateLimited),
        (
            429,
            r#"{"error":{"code":"1302","message":"您的账户已达到速率限制，请您控制请求频率"}}"#,
            K::RateLimited,
        ),
        // A code of Zhipu's that another provider numbers for itself.
        (429, r#"{"object":"error","message":"x","type":"y","param":null,"code":"1113"}"#, K::RateLimited),
        (400, r#"{"error":{"message":"bad","type":"y","code":"1261"}}"#, K::Status),
        // A limit per minute, which renews itself.
        (
            429,
            r#"{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED"}}"#,
            K::RateLimited,
        ),
        (
            429,
            r#"{"error":{"message":"Tokens per minute limit exceeded - too many tokens processed.","type":"too_many_tokens_error","param":"quota","code":"token_quota_exceeded"}}"#,
            K::RateLimited,
        ),
        (429, r#"{"message":"Too many tokens, please wait before trying again."}"#, K::RateLimited),
        (
            400,
            r#"{"error":{"message":"Invalid value for 'temperature'","type":"invalid_request_error","param":"temperature","code":null}}"#,
            K::Status,
        ),
        (
            400,
            r#"{"error":{"message":"max_tokens is too large: 100000. This model supports at most 16384 completion tokens","type":"invalid_request_error","param":"max_tokens","code":"invalid_value"}}"#,
            K::Status,
        ),
        (
            400,
            r#"{"error":{"message":"tools[0].function.name exceeds the maximum length of 64","type":"invalid_request_error"}}"#,
            K::Status,
        ),
        (
            400,
            r#"{"message":"too many tokens: max tokens must be less than or equal to 4096, the maximum output for this model - received 8192."}"#,
            K::Status,
        ),
        (
            400,
            r#"{"error":{"message":"The maximum tokens you requested exceeds the model limit of 4096.","type":"x"}}"#,
            K::Status,
        ),
        // The request, sent back, does not count.
        (
            422,
            r#"{"detail":[{"type":"missing","loc":["body","model"],"msg":"Field required","input":{"messages":[{"role":"user","content":"insufficient balance, prompt is too long, invalid_api_key"}]}}]}"#,
            K::Status,
        ),
        (401, r#"{"error":{"message":"Unauthorized"}}"#, K::Unauthorized),
        (403, "<html><title>Forbidden</title><body>insufficient balance</body></html>", K::Unauthorized),
        (500, r#"{"error":{"message":"Internal server error"}}"#, K::Status),
        (502, "<html><title>502 Bad Gateway</title></html>", K::Status),
        (503, "", K::Status),
        (404, r#"{"detail":"Not Found"}"#, K::WrongAddress),
        // Cloudflare's numbers are not iFlytek's.
        (
            500,
            r#"{"errors":[{"code":10013,"message":"An unknown error has occurred"}],"success":false}"#,
            K::Status,
        ),
        // A channel of a gateway has a bad key, and the next one may not.
        (500, r#"{"error":{"message":"Unauthorized"}}"#, K::Status),
        (502, r#"{"error":{"message":"Invalid API key"}}"#, K::Status),
        (400, r#"{"error":{"message":"model 'llama': tool 'look' not found in provided tools"}}"#, K::Status),
    ];
    for (status, body, kind) in cases {
        assert_eq!(classify(status, body), kind, "{status} {body}");
    }
}

#[test]
fn escaped_chinese_in_a_body_is_classified() {
    let body = r#"{"error":{"message":"\u4f59\u989d\u4e0d\u8db3","type":"upstream_error"}}"#;
    assert_eq!(classify(500, body), K::QuotaExhausted);
}

#[test]
fn star_in_a_rule_matches_the_text_between_its_parts() {
    assert!(says(
        "the input length 9 exceeds the maximum length 8",
        "input length*exceeds the maximum length"
    ));
    assert!(!says(
        "exceeds the maximum length of the input length",
        "input length*exceeds the maximum length"
    ));
    assert!(says("abc", "b") && !says("abc", "d"));
    assert!(says("model 'x' not found", "model '*' not found"));
    assert!(!says("model 'x' has no tool 'y' not found", "model '*' not found"));
}

const HEAD: &str = "# Errors of providers

What providers send when they refuse, and what Throughline takes it for. A row looks for any code, type, status word or reason in the
error, or for words of its text, in which `*` is anything; words that stand alone are the whole message. Without a status it holds with
every one; an error inside a 200 has only one that its JSON says, and every row that looks for something holds for it. Digits count only
where nothing else in the error says its type, and `base_resp` is MiniMax's envelope. What no row knows is classified by its status: 401
and 403 are a bad key, 402 is a quota, 413 too long, 429 a rate limit, 529 overloaded.

| class | what follows |
|---|---|
| too long | old tool results are cut and the call is made again, and later turns of the conversation begin with them cut; else the error `context_too_long` |
| quota | asked once; the agent's next upstream, else `insufficient_quota` |
| rate limit, overloaded | a wait and another try; the next upstream, else `rate_limited` or `overloaded` |
| bad key | asked once; the next upstream, else `unauthorized` |
| not allowed | asked once; the next upstream, else `access_denied` |
| unknown model | asked once; the next upstream, else `model_not_found` |
| filtered | asked once; the next upstream, else `content_filter` |
| bad request | asked once, unless the status is 500 or more; the next upstream, else `upstream_error` |

This holds until the first content of a reply. After it nothing is asked again: what was shown is kept, and the turn ends with the error
of the class; a bad request is an error like any other there.

This page is written from the table in `crates/throughline/src/upstream/failure_rules`, where each row has an example that a test
classifies: `THROUGHLINE_BLESS=1 cargo test -p throughline --lib failure_rules`.

| provider | status | codes and words | class | source |
|---|---|---|---|---|
";

/// Longest cell of a table, in characters.
const CELL_CHARS_MAX: usize = 200;

fn class(kind: K) -> &'static str {
    match kind {
        K::ContextTooLong => "too long",
        K::QuotaExhausted => "quota",
        K::RateLimited => "rate limit",
        K::Overloaded => "overloaded",
        K::Unauthorized => "bad key",
        K::NotAllowed => "not allowed",
        K::ModelNotFound => "unknown model",
        K::ContentFiltered => "filtered",
        K::Status => "bad request",
        other => panic!("no row has the class {other:?}"),
    }
}

/// Codes and phrases of a row, in as many cells as they need.
fn cells(rule: &FailureRule) -> Vec<String> {
    let codes = rule.codes.iter().map(|code| format!("`{code}`"));
    // A backtick inside code needs two around it.
    let words = rule
        .words
        .iter()
        .map(|words| if words.contains('`') { format!("“`` {words} ``”") } else { format!("“`{words}`”") });
    let messages = rule.messages.iter().map(|message| format!("“`{message}`” alone"));
    let mut cells = vec![String::new()];
    if rule.by_status() {
        return vec!["whatever it says".to_owned()];
    }
    for mark in codes.chain(words).chain(messages) {
        let last = cells.last_mut().expect("there is one");
        if !last.is_empty() && last.chars().count() + mark.chars().count() + 2 > CELL_CHARS_MAX {
            cells.push(mark);
        } else {
            let comma = if last.is_empty() { "" } else { ", " };
            let _ = write!(last, "{comma}{mark}");
        }
    }
    cells
}

#[test]
fn errors_page_is_generated_from_the_rules() {
    let mut rules: Vec<&FailureRule> = all().collect();
    // Stable: a provider's rows stay in the order in which they are tried.
    rules.sort_by_key(|rule| rule.provider.to_lowercase());
    let mut page = HEAD.to_owned();
    for rule in rules {
        let statuses: Vec<String> = rule.statuses.iter().map(u16::to_string).collect();
        for cell in cells(rule) {
            let (provider, statuses, class) = (rule.provider, statuses.join(", "), class(rule.kind));
            let _ =
                writeln!(page, "| {provider} | {statuses} | {cell} | {class} | [source]({}) |", rule.source);
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors-of-providers.md");
    if std::env::var_os("THROUGHLINE_BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "THROUGHLINE_BLESS=1 cargo test -p throughline --lib failure_rules writes {}",
        path.display()
    );
}
