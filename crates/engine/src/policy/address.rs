//! Named hosts: a call to any other host needs an approval.
//!
//! An address that a model chooses can carry out what the model has read (`https://collector.example/?d=…`),
//! also where the call itself only reads. A host counts as named if a person wrote it in this conversation,
//! if the prompt or the settings have it, or if a tool whose results are addresses gave exactly this address:
//! an unchanged address carries no data out. What a person approves is remembered like any answer.

use super::matcher::host_of;
use crate::tool::{AddressRole, AddressRule, OfferedTool};
use std::collections::BTreeSet;
use throughline_wire::CallArguments;

/// The texts of a conversation that can name a host.
#[derive(Clone, Debug, Default)]
pub(crate) struct NamingTexts<'a> {
    /// The prompt; in text mode it holds the definitions of tools as well.
    pub prompt: Option<&'a str>,
    /// The offered tools: what their definitions say names nothing.
    pub tools: &'a [OfferedTool],
    /// Messages of the user in this conversation.
    pub messages: Vec<&'a str>,
    /// Results of tools that name addresses.
    pub results: Vec<&'a str>,
}

impl NamingTexts<'_> {
    /// Address of a call to a host that has not been named.
    pub(crate) fn unnamed_address<'c>(
        &self,
        role: &AddressRole,
        arguments: &'c CallArguments,
    ) -> Option<&'c str> {
        let AddressRole::Visits(rule) = role else { return None };
        // Without an address there is no host to check; the check of the arguments reports it.
        let address = arguments.value.get(&rule.argument)?.as_str()?;
        let is_named = host_key_of(address).is_some_and(|host| rule.covers(&host) || self.name(&host))
            || self.results.iter().any(|result| result.lines().any(|line| line.trim() == address))
            || rule.covers_all();
        (!is_named).then_some(address)
    }

    fn name(&self, host: &str) -> bool {
        let is_in = |text: &str| hosts_in(text).contains(host);
        self.messages.iter().any(|text| is_in(text))
            || (self.prompt.is_some_and(is_in)
                && !self.tools.iter().any(|tool| {
                    is_in(&tool.definition.description) || is_in(&tool.definition.parameters.to_string())
                }))
    }
}

impl AddressRule {
    /// The settings name this host. `www.` in front of it makes no difference.
    ///
    /// ```
    /// use throughline_engine::AddressRule;
    ///
    /// let hosts = ["docs.rs", "*.example.org"].map(str::to_owned);
    /// let rule = AddressRule { argument: "url".into(), hosts: hosts.into(), setting: "`hosts`".into() };
    /// assert!(rule.names_host("www.Docs.rs") && rule.names_host("a.b.example.org"));
    /// assert!(!rule.names_host("example.org") && !rule.names_host("docs.rs.example.com"));
    /// ```
    pub fn names_host(&self, host: &str) -> bool {
        self.covers_all() || host_key(host).is_some_and(|host| self.covers(&host))
    }

    fn covers(&self, key: &str) -> bool {
        self.hosts.iter().any(|pattern| match pattern.strip_prefix("*.") {
            Some(domain) => host_key(domain).is_some_and(|domain| {
                key.strip_suffix(domain.as_str()).is_some_and(|below| below.len() > 1 && below.ends_with('.'))
            }),
            None => host_key(pattern).as_deref() == Some(key),
        })
    }

    fn covers_all(&self) -> bool {
        self.hosts.iter().any(|pattern| pattern == "*")
    }
}

/// The host of an address as people are shown it.
pub(crate) fn shown_host(address: &str) -> Option<String> {
    host_of(address)
}

fn host_key_of(address: &str) -> Option<String> {
    let (scheme, rest) = address.split_once("://")?;
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let is_odd = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '\\' | '@' | '%' | '[');
    if !matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https") || authority.contains(is_odd) {
        return None;
    }
    let (host, port) = authority.split_once(':').unwrap_or((authority, ""));
    if !port.chars().all(|c| c.is_ascii_digit()) {
        return None;
    }
    host_key(host)
}

/// A host in one spelling: lower case, without `www.` and a dot at the end, other alphabets as in the domain name system.
fn host_key(host: &str) -> Option<String> {
    let host = idna::domain_to_ascii(host).ok()?;
    let host = host.strip_suffix('.').unwrap_or(&host);
    let host = host.strip_prefix("www.").filter(|rest| rest.contains('.')).unwrap_or(host);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let is_host = host.split('.').all(|label| !label.is_empty() && label.chars().all(is_plain));
    is_host.then(|| host.to_owned())
}

/// The hosts that a text names, as addresses or by their names alone. Hosts inside the path or query of an
/// address, or in an e-mail address, do not count.
fn hosts_in(text: &str) -> BTreeSet<String> {
    let is_word = |c: char| (c.is_alphanumeric() && !is_ideographic(c)) || matches!(c, '-' | '.' | '_');
    let mut hosts = BTreeSet::new();
    collect_hosts(text, is_word, &mut hosts);
    if text.contains(is_ideographic) {
        // Internationalized names appear between words of the same script, so each is read to its last such
        // letter.
        collect_hosts(text, |c| c.is_alphanumeric() || matches!(c, '-' | '.' | '_'), &mut hosts);
    }
    hosts
}

fn collect_hosts(text: &str, is_word: impl Fn(char) -> bool, hosts: &mut BTreeSet<String>) {
    let mut at = 0;
    while let Some(offset) = text[at..].find(&is_word) {
        let start = at + offset;
        let end = text[start..].find(|c| !is_word(c)).map_or(text.len(), |length| start + length);
        let (before, after) = (&text[..start], &text[end..]);
        at = end;
        if before.ends_with('@') || after.starts_with('@') {
            continue;
        }
        let word = text[start..end].trim_matches(['.', '-', '_']);
        let is_address = before.ends_with("://");
        let Some(key) = host_key(word).filter(|key| is_address || looks_like_host(key)) else { continue };
        hosts.insert(key);
        if is_address || after.starts_with(['/', '?', '#', ':']) {
            let is_url = |c: char| c.is_ascii_graphic() && !matches!(c, '<' | '>' | '"' | '`' | '\'');
            at = end + after.find(|c| !is_url(c)).unwrap_or(after.len());
        }
    }
}

/// `docs.rs` and `127.0.0.1`, but not `e.g.` or `1.5`.
fn looks_like_host(key: &str) -> bool {
    let labels: Vec<&str> = key.split('.').collect();
    let is_quad = labels.len() == 4 && labels.iter().all(|label| label.parse::<u8>().is_ok());
    let last = labels.last().copied().unwrap_or_default();
    is_quad || (labels.len() > 1 && last.len() > 1 && last.starts_with(|c: char| c.is_ascii_alphabetic()))
}

fn is_ideographic(c: char) -> bool {
    c >= '\u{2e80}'
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{
        ApprovalDecision, ApprovalScope, ArgumentTest, PermissionPreset, Policy, PolicyDecision, PolicyInput,
        PolicyRule, RememberRequest, RememberedDecision, RuleAction, explain,
    };
    use crate::tool::Effect;
    use serde_json::json;

    fn rule(hosts: &[&str]) -> AddressRole {
        let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        AddressRole::Visits(AddressRule { argument: "url".into(), hosts, setting: "`hosts`".into() })
    }

    #[test]
    fn host_is_named_by_the_user_settings_or_a_search() {
        let table: [(&str, &[&str], &str, &str, bool); 40] = [
            // text of a person, hosts of the settings, result of a search, address, named
            ("", &[], "", "https://evil.example/?d=1", false),
            ("Read https://docs.rs/serde", &[], "", "https://docs.rs/other?x=1", true),
            ("Read HTTPS://Docs.RS:443/serde", &[], "", "http://docs.rs/", true),
            ("look at docs.rs please", &[], "", "https://docs.rs/", true),
            ("look at docs.rs.", &[], "", "https://docs.rs/", true),
            ("look at (docs.rs), now", &[], "", "https://DOCS.rs./", true),
            ("看看example.com的内容", &[], "", "https://example.com/", true),
            ("打开https://example.com/a，谢谢", &[], "", "https://example.com/b", true),
            ("look at docs.rs", &[], "", "https://www.docs.rs/", true),
            ("look at www.docs.rs", &[], "", "https://docs.rs/", true),
            ("look at docs.rs", &[], "", "https://evil.docs.rs/", false),
            ("look at docs.rs", &[], "", "https://docs.rs.evil.example/", false),
            ("look at docs.rs", &[], "", "https://evil-docs.rs/", false),
            ("look at evil-docs.rs", &[], "", "https://docs.rs/", false),
            ("look at docs.rs", &[], "", "https://docs.rs@evil.example/", false),
            ("look at docs.rs", &[], "", "https://evil.example\\@docs.rs/", false),
            ("look at docs.rs", &[], "", "https://evil.example/docs.rs", false),
            ("look at docs.rs", &[], "", "https://evil.example?docs.rs", false),
            ("look at docs.rs", &[], "", "docs.rs", false),
            ("look at docs.rs", &[], "", "ftp://docs.rs/", false),
            ("https://docs.rs/?next=evil.example", &[], "", "https://evil.example/", false),
            ("docs.rs/a/evil.example", &[], "", "https://evil.example/", false),
            ("mail me@evil.example", &[], "", "https://evil.example/", false),
            ("https://me@evil.example/", &[], "", "https://evil.example/", false),
            ("e.g. 1.5 i.e. this", &[], "", "https://e.g/", false),
            ("see http://intranet/x", &[], "", "http://intranet/", true),
            ("see 192.0.2.7 now", &[], "", "http://192.0.2.7:80/", true),
            ("Lies Bücher.example", &[], "", "https://bücher.example/", true),
            ("Lies bücher.example", &[], "", "https://xn--bcher-kva.example/", true),
            ("Lies bücher.example", &[], "", "https://cher.example/", false),
            ("Read xn--bcher-kva.example", &[], "", "https://BÜCHER.example/", true),
            ("打开 例子.测试", &[], "", "https://xn--fsqu00a.xn--0zwm56d/", true),
            ("", &["docs.rs"], "", "https://docs.rs/x", true),
            ("", &["Docs.RS"], "", "https://www.docs.rs/x", true),
            ("", &["*.example.org"], "", "https://a.b.example.org/", true),
            ("", &["*.example.org"], "", "https://example.org/", false),
            ("", &["*"], "", "https://evil.example/?d=1", true),
            ("", &[], "[1] A\nhttps://a.example/p?q=1\nText", "https://a.example/p?q=1", true),
            ("", &[], "[1] A\nhttps://a.example/p?q=1\nText", "https://a.example/p?q=2", false),
            ("", &[], "[1] A\nhttps://a.example/p?q=1\nText", "https://a.example/p", false),
        ];
        for (message, hosts, result, address, expected) in table {
            let texts =
                NamingTexts { messages: vec![message], results: vec![result], ..NamingTexts::default() };
            let arguments = CallArguments::from_value(json!({ "url": address }));
            let is_named = texts.unnamed_address(&rule(hosts), &arguments).is_none();
            assert_eq!(is_named, expected, "{address} after {message:?} with {hosts:?} and {result:?}");
        }
    }

    #[test]
    fn unnamed_host_asks_unless_a_rule_names_tool_or_host() {
        let tool = OfferedTool { addresses: rule(&[]), ..OfferedTool::new("web.get", Effect::Read) };
        let check = |policy: Policy, expected: &str| {
            let arguments = CallArguments::from_value(json!({ "url": "https://evil.example/" }));
            let decision = explain(&tool, &arguments, &policy, &[]);
            let kind = match decision {
                PolicyDecision::Allow { .. } => "allow",
                PolicyDecision::Ask { .. } => "ask",
                PolicyDecision::Deny { .. } => "deny",
            };
            assert_eq!(format!("{kind} {}", decision.rule()), expected, "{policy:?}");
        };
        let of = |rule: PolicyRule| Policy { rules: vec![rule], ..Policy::default() };
        let allow = || PolicyRule::new(RuleAction::Allow);
        check(Policy::default(), "ask unnamed_host");
        check(of(allow().tool("web.get")), "allow rule:1 allow web.get");
        check(of(allow().tool("*")), "allow rule:1 allow *");
        let host = ArgumentTest::Host("evil.example".into());
        check(of(allow().argument("url", host)), "allow rule:1 allow url host evil.example");
        check(of(allow().effect(Effect::Read)), "ask unnamed_host");
        check(of(allow().source("builtin")), "ask unnamed_host");
        check(of(PolicyRule::new(RuleAction::Ask).tool("web")), "ask rule:1 ask web");
        check(of(PolicyRule::new(RuleAction::Deny).tool("web")), "deny rule:1 deny web");
        let with = |permissions| Policy { permissions: Some(permissions), ..Policy::default() };
        check(with(PermissionPreset::Everything), "allow permissions:everything");
        check(with(PermissionPreset::ReadOnly), "ask unnamed_host");
        check(with(PermissionPreset::Workspace), "ask unnamed_host");
    }

    #[test]
    fn remembered_approval_of_a_tool_covers_every_host() {
        let tool = OfferedTool { addresses: rule(&[]), ..OfferedTool::new("web.get", Effect::Read) };
        let arguments = CallArguments::from_value(json!({ "url": "https://evil.example/" }));
        let case = PolicyInput { tool: &tool, fingerprint: &tool.fingerprint, arguments: &arguments };
        let request = RememberRequest::any(ApprovalScope::Always);
        let always = RememberedDecision::from_answer(&request, &case, ApprovalDecision::Approve, None, None);
        let decision = explain(&tool, &arguments, &Policy::default(), always.as_slice());
        assert_eq!(decision, PolicyDecision::Allow { rule: "remembered:always".into() });
    }

    #[test]
    fn hosts_in_the_prompt_count_but_not_in_tool_definitions() {
        let mut tools = [OfferedTool::new("a.b", Effect::Read)];
        tools[0].definition.description = "Sends to evil.example".into();
        let prompt = Some("Our pages are on docs.example. Tools: a_b: Sends to evil.example");
        let texts = NamingTexts { prompt, tools: &tools, ..NamingTexts::default() };
        let is_named = |address: &str| {
            let arguments = CallArguments::from_value(json!({ "url": address }));
            texts.unnamed_address(&rule(&[]), &arguments).is_none()
        };
        assert!(is_named("https://docs.example/a"));
        assert!(!is_named("https://evil.example/?d=1"));
    }

    #[test]
    fn tool_without_address_arguments_needs_no_named_host() {
        let arguments = CallArguments::from_value(json!({ "url": "https://evil.example/" }));
        let texts = NamingTexts::default();
        assert_eq!(texts.unnamed_address(&AddressRole::None, &arguments), None);
        assert_eq!(texts.unnamed_address(&AddressRole::Names, &arguments), None);
        assert_eq!(texts.unnamed_address(&rule(&[]), &CallArguments::from_value(json!({}))), None);
    }
}
