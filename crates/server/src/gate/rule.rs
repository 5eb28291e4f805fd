//! Which route needs what. A route that is not here is refused, so that a new one is open to nobody until somebody has
//! thought about it. R: R4

use crate::principal::Scope;
use http::Method;

/// What a request must show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    /// Nothing: it tells nothing of anybody.
    Nothing,
    /// A key with this scope.
    Scope(Scope),
}

/// What counts against the new turns of a key, and what may be large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    /// It begins a turn.
    NewTurn,
    /// It begins a turn, and its body holds the pictures of a chat.
    Chat,
    /// Its body is a file.
    Upload,
}

/// A rule for a path and everything below it; the longest one that fits decides. `{}` stands for a parameter.
struct Rule {
    path: &'static str,
    reads: Needs,
    writes: Needs,
}

const OPEN: Needs = Needs::Nothing;
const CHAT: Needs = Needs::Scope(Scope::Chat);
const TOOLS: Needs = Needs::Scope(Scope::Tools);
const ADMIN: Needs = Needs::Scope(Scope::Admin);

const fn rule(path: &'static str, reads: Needs, writes: Needs) -> Rule {
    Rule { path, reads, writes }
}

// What is everybody's, such as agents, is changed with `admin`; the handlers of such routes ask for it besides.
const RULES: &[Rule] = &[
    rule("/", OPEN, ADMIN),
    rule("/healthz", OPEN, ADMIN),
    rule("/readyz", OPEN, ADMIN),
    rule("/metrics", ADMIN, ADMIN),
    // The page and its files: the same for everybody.
    rule("/{}", OPEN, ADMIN),
    rule("/c/{}", OPEN, ADMIN),
    rule("/assets/{}", OPEN, ADMIN),
    rule("/home", OPEN, ADMIN),
    rule("/home.css", OPEN, ADMIN),
    rule("/home.js", OPEN, ADMIN),
    rule("/approve", OPEN, ADMIN),
    rule("/approve.js", OPEN, ADMIN),
    rule("/docs", OPEN, ADMIN),
    rule("/v1/docs", OPEN, ADMIN),
    rule("/v1/openapi.json", OPEN, ADMIN),
    // The same as without it, with a choice in the address.
    rule("/render", CHAT, CHAT),
    rule("/v1/agent-fields", CHAT, ADMIN),
    rule("/v1/agents", CHAT, CHAT),
    rule("/v1/calls", CHAT, CHAT),
    rule("/v1/chat/completions", CHAT, CHAT),
    rule("/v1/clients", CHAT, CHAT),
    rule("/v1/completions", CHAT, CHAT),
    rule("/v1/conversations", CHAT, CHAT),
    // What is sent there is read and forgotten.
    rule("/v1/decode", CHAT, CHAT),
    rule("/v1/embeddings", CHAT, CHAT),
    rule("/v1/files", CHAT, CHAT),
    rule("/v1/history", CHAT, CHAT),
    rule("/v1/keys", ADMIN, ADMIN),
    rule("/v1/models", CHAT, CHAT),
    rule("/v1/parse", CHAT, CHAT),
    rule("/v1/prompts", CHAT, CHAT),
    // What it takes is what a link in a chat shows in place of a key.
    rule("/v1/question-links", OPEN, OPEN),
    rule("/v1/remembered", CHAT, CHAT),
    rule("/v1/search", CHAT, CHAT),
    // What it takes is what a link shows in place of a key.
    rule("/v1/sign-in", OPEN, OPEN),
    rule("/v1/telemetry", CHAT, CHAT),
    rule("/v1/tickets", CHAT, CHAT),
    rule("/v1/tools", CHAT, CHAT),
    // Running one without a model in between.
    rule("/v1/tools/{}/call", TOOLS, TOOLS),
    rule("/v1/turns", CHAT, CHAT),
    rule("/v1/upstreams", CHAT, ADMIN),
    // It looks for models on this machine, and says which keys the environment has.
    rule("/v1/upstreams/known", ADMIN, ADMIN),
    rule("/v1/ws", CHAT, CHAT),
    #[cfg(feature = "test-routes")]
    rule("/_echo", OPEN, ADMIN),
];

/// Routes that begin a turn.
const NEW_TURN: [&str; 3] = ["/v1/turns", "/v1/completions", "/v1/embeddings"];
/// Those whose body holds pictures.
const CHAT_BODY: [&str; 2] = ["/v1/chat/completions", "/render/{render}/v1/chat/completions"];
/// Routes whose body is a file.
const UPLOAD: [&str; 3] = ["/v1/files", "/v1/conversations/import", "/v1/decode"];

/// What a request to the route of this pattern needs; `None`: there is no rule.
pub(super) fn needs(pattern: &str, method: &Method) -> Option<Needs> {
    let rule = RULES.iter().filter(|rule| is_below(pattern, rule.path)).max_by_key(|rule| rule.path.len())?;
    Some(if is_read(method) { rule.reads } else { rule.writes })
}

/// Whether a route is at this path or below it. `{}` is any parameter, however the route calls it.
fn is_below(pattern: &str, path: &str) -> bool {
    let mut parts = pattern.split('/');
    path.split('/').all(|wanted| {
        parts.next().is_some_and(|part| part == wanted || (wanted == "{}" && part.starts_with('{')))
    })
}

/// Whether a method only looks.
pub(super) fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// What kind of request it is.
pub(super) fn kind(pattern: &str, method: &Method) -> Kind {
    match *method {
        Method::POST if CHAT_BODY.contains(&pattern) => Kind::Chat,
        Method::POST if NEW_TURN.contains(&pattern) => Kind::NewTurn,
        Method::POST | Method::PUT if UPLOAD.contains(&pattern) => Kind::Upload,
        _ => Kind::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // R: R4
    #[test]
    fn the_longest_rule_decides_and_what_has_none_is_nobodys() {
        for (method, pattern, expected) in [
            (Method::GET, "/healthz", Some(OPEN)),
            (Method::GET, "/v1/turns/{turn_id}/events", Some(CHAT)),
            (Method::POST, "/v1/tools/{name}/call", Some(TOOLS)),
            (Method::POST, "/v1/tools/{tool}/call/more", Some(TOOLS)),
            (Method::GET, "/v1/tools/schema/call", Some(CHAT)),
            (Method::GET, "/docs/", Some(OPEN)),
            (Method::GET, "/v1/tools/{name}", Some(CHAT)),
            (Method::DELETE, "/v1/keys/{key_id}", Some(ADMIN)),
            (Method::GET, "/v1/turnstiles", None),
            (Method::GET, "/v1", None),
            (Method::GET, "/", Some(OPEN)),
            (Method::GET, "/other", None),
        ] {
            assert_eq!(needs(pattern, &method), expected, "{method} {pattern}");
        }
    }

    // R: R4, E5
    #[test]
    fn every_route_has_a_rule() {
        let routes = crate::openapi().paths.paths;
        assert!(!routes.is_empty());
        for path in routes.keys() {
            for method in [Method::GET, Method::POST, Method::DELETE] {
                assert!(needs(path, &method).is_some(), "{path} has no rule in gate/rule.rs");
            }
        }
    }
}
