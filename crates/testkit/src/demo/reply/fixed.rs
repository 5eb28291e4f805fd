//! Replies that do not depend on the conversation: scripts in a file.

use super::DemoScene;
use crate::script::ModelScript;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// One reply in both languages.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct FixedReply {
    en: ModelScript,
    zh: ModelScript,
}

/// Replies by the name of their rule. A test reads the file.
static REPLIES: LazyLock<BTreeMap<String, FixedReply>> =
    LazyLock::new(|| toml::from_str(include_str!("fixed.toml")).unwrap_or_default());

/// The reply of this name, in the language of the conversation.
pub(super) fn reply(name: &str, scene: &DemoScene<'_>) -> ModelScript {
    let reply = REPLIES.get(name).cloned();
    reply.map_or_else(ModelScript::default, |reply| scene.language.choose(reply.en, reply.zh))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_replies_have_moves_in_both_languages() {
        let replies: BTreeMap<String, FixedReply> = toml::from_str(include_str!("fixed.toml")).unwrap();
        let names: Vec<&str> = replies.keys().map(String::as_str).collect();
        assert_eq!(names, ["long_answer", "speak", "thanks", "think"]);
        for (name, FixedReply { en, zh }) in &replies {
            assert!(!en.moves.is_empty() && en.moves.len() == zh.moves.len(), "{name}");
        }
    }
}
