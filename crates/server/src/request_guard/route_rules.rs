//! Access rules of all routes. A route without a rule is refused, so a new route is closed until it has one.

use crate::principal::KeyScope;
use http::Method;

/// Access that a route requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RouteAccess {
    /// No credential: the route reveals nothing about users.
    Open,
    /// A key with this scope.
    Scope(KeyScope),
}

/// Kind of request, for rate limits and body limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    Plain,
    /// The request starts a turn.
    NewTurn,
    /// The request starts a turn, and its body may contain the pictures of a chat.
    Chat,
    /// The body is a file.
    Upload,
}

/// A rule for a path and everything below it; the longest match decides. `{}` matches a parameter.
struct RouteRule {
    path: &'static str,
    reads: RouteAccess,
    writes: RouteAccess,
}

const OPEN: RouteAccess = RouteAccess::Open;
const CHAT: RouteAccess = RouteAccess::Scope(KeyScope::Chat);
const TOOLS: RouteAccess = RouteAccess::Scope(KeyScope::Tools);
const AGENTS: RouteAccess = RouteAccess::Scope(KeyScope::Agents);
const ADMIN: RouteAccess = RouteAccess::Scope(KeyScope::Admin);

const fn route_rule(path: &'static str, reads: RouteAccess, writes: RouteAccess) -> RouteRule {
    RouteRule { path, reads, writes }
}

// Shared resources, such as agents, are changed with `admin`; the handlers of such routes check it in
// addition.
const RULES: &[RouteRule] = &[
    route_rule("/", OPEN, ADMIN),
    route_rule("/healthz", OPEN, ADMIN),
    route_rule("/readyz", OPEN, ADMIN),
    route_rule("/metrics", ADMIN, ADMIN),
    // The page and its files: the same for all users.
    route_rule("/{}", OPEN, ADMIN),
    route_rule("/c/{}", OPEN, ADMIN),
    route_rule("/s/{}", OPEN, ADMIN),
    route_rule("/history/calls", OPEN, ADMIN),
    route_rule("/assets/{}", OPEN, ADMIN),
    // The way to the provider and back.
    route_rule("/sign-in", OPEN, ADMIN),
    route_rule("/frames/{}", OPEN, ADMIN),
    route_rule("/home", OPEN, ADMIN),
    route_rule("/home.css", OPEN, ADMIN),
    route_rule("/home.js", OPEN, ADMIN),
    route_rule("/approve", OPEN, ADMIN),
    route_rule("/approve.js", OPEN, ADMIN),
    route_rule("/docs", OPEN, ADMIN),
    route_rule("/v1/docs", OPEN, ADMIN),
    route_rule("/v1/openapi.json", OPEN, ADMIN),
    // The token in the address is the key of a program that was started here.
    route_rule("/plugin-callback/{}", ADMIN, OPEN),
    route_rule("/v1/agent-fields", CHAT, AGENTS),
    route_rule("/v1/agents", CHAT, CHAT),
    // The audio and texts sent there are processed and not stored.
    route_rule("/v1/audio", CHAT, CHAT),
    route_rule("/v1/calls", CHAT, CHAT),
    route_rule("/v1/chat/completions", CHAT, CHAT),
    route_rule("/v1/clients", CHAT, CHAT),
    route_rule("/v1/completions", CHAT, CHAT),
    route_rule("/v1/conversations", CHAT, CHAT),
    // The data sent there are processed and not stored.
    route_rule("/v1/decode", CHAT, CHAT),
    route_rule("/v1/embeddings", CHAT, CHAT),
    route_rule("/v1/files", CHAT, CHAT),
    route_rule("/v1/history", CHAT, CHAT),
    route_rule("/v1/keys", ADMIN, ADMIN),
    route_rule("/v1/me", CHAT, CHAT),
    // What happens on the whole server.
    route_rule("/v1/metrics", ADMIN, ADMIN),
    route_rule("/v1/models", CHAT, CHAT),
    route_rule("/v1/parse", CHAT, CHAT),
    route_rule("/v1/prompts", CHAT, CHAT),
    // The credential is in the body: a link of a chat, instead of a key.
    route_rule("/v1/question-links", OPEN, OPEN),
    route_rule("/v1/remembered", CHAT, CHAT),
    route_rule("/v1/saved-prompts", CHAT, CHAT),
    route_rule("/v1/search", CHAT, CHAT),
    // The credential is in the body: a shared link, instead of a key.
    route_rule("/v1/shared", OPEN, OPEN),
    route_rule("/v1/shares", CHAT, CHAT),
    // The credential is in the body: a sign-in link, instead of a key.
    route_rule("/v1/sign-in", OPEN, OPEN),
    route_rule("/v1/sign-out", CHAT, CHAT),
    route_rule("/v1/telemetry", CHAT, CHAT),
    route_rule("/v1/tickets", CHAT, CHAT),
    route_rule("/v1/tools", CHAT, CHAT),
    // Running one without a model in between.
    route_rule("/v1/tools/{}/call", TOOLS, TOOLS),
    route_rule("/v1/turns", CHAT, CHAT),
    route_rule("/v1/upstreams", CHAT, ADMIN),
    // It probes for models on this machine, and lists which keys the environment has.
    route_rule("/v1/upstreams/known", ADMIN, ADMIN),
    route_rule("/v1/users", ADMIN, ADMIN),
    route_rule("/v1/voices", CHAT, CHAT),
    route_rule("/v1/ws", CHAT, CHAT),
    #[cfg(feature = "test-routes")]
    route_rule("/_echo", OPEN, ADMIN),
];

/// Routes that begin a turn.
const NEW_TURN: [&str; 5] = [
    "/v1/turns",
    "/v1/turns/{turn_id}/calls/{tool_id}/retry",
    "/v1/audio/speech",
    "/v1/completions",
    "/v1/embeddings",
];
/// The one whose body holds pictures.
const CHAT_BODY: &str = "/v1/chat/completions";
/// Routes whose body is a file.
const UPLOAD: [&str; 4] = ["/v1/audio/transcriptions", "/v1/files", "/v1/conversations/import", "/v1/decode"];

/// Access that the route of this pattern requires; `None` if it has no rule.
pub(super) fn required_access(pattern: &str, method: &Method) -> Option<RouteAccess> {
    let pattern = without_rendering(pattern);
    let rule = RULES.iter().filter(|rule| is_below(pattern, rule.path)).max_by_key(|rule| rule.path.len())?;
    Some(if is_read(method) { rule.reads } else { rule.writes })
}

/// Removes the prefix that selects a rendering from a route.
fn without_rendering(pattern: &str) -> &str {
    pattern.strip_prefix("/render/{render}").unwrap_or(pattern)
}

/// True for this path and everything below it. `{}` matches a parameter of any name.
fn is_below(pattern: &str, path: &str) -> bool {
    let mut parts = pattern.split('/');
    path.split('/').all(|wanted| {
        parts.next().is_some_and(|part| part == wanted || (wanted == "{}" && part.starts_with('{')))
    })
}

/// True for methods that only read.
pub(super) fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

pub(super) fn request_kind(pattern: &str, method: &Method) -> RequestKind {
    let pattern = without_rendering(pattern);
    match *method {
        Method::POST if pattern == CHAT_BODY => RequestKind::Chat,
        Method::POST if NEW_TURN.contains(&pattern) => RequestKind::NewTurn,
        Method::POST | Method::PUT if UPLOAD.contains(&pattern) => RequestKind::Upload,
        _ => RequestKind::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_route_rule_wins_and_unknown_routes_have_none() {
        for (method, pattern, expected) in [
            (Method::GET, "/healthz", Some(OPEN)),
            (Method::GET, "/v1/turns/{turn_id}/events", Some(CHAT)),
            (Method::POST, "/v1/tools/{name}/call", Some(TOOLS)),
            (Method::POST, "/v1/tools/{tool}/call/more", Some(TOOLS)),
            (Method::GET, "/v1/tools/schema/call", Some(CHAT)),
            (Method::GET, "/docs/", Some(OPEN)),
            (Method::GET, "/v1/tools/{name}", Some(CHAT)),
            (Method::DELETE, "/v1/keys/{key_id}", Some(ADMIN)),
            (Method::POST, "/render/{render}/v1/audio/speech", Some(CHAT)),
            (Method::GET, "/v1/turnstiles", None),
            (Method::GET, "/v1", None),
            (Method::GET, "/", Some(OPEN)),
            (Method::GET, "/other", None),
        ] {
            assert_eq!(required_access(pattern, &method), expected, "{method} {pattern}");
        }
    }

    #[test]
    fn every_route_has_a_rule() {
        let routes = crate::openapi().paths.paths;
        assert!(!routes.is_empty());
        for path in routes.keys() {
            for method in [Method::GET, Method::POST, Method::DELETE] {
                assert!(
                    required_access(path, &method).is_some(),
                    "{path} has no rule in request_guard/rule.rs"
                );
            }
        }
    }
}
