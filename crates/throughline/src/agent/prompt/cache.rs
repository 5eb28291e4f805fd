//! `{{ tools }}` rendered once for each protocol and agent, until its settings or the registry change.

use super::ToolsText;
use crate::agent::TextProtocolKind;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use throughline_tools::{ToolFingerprint, ToolToggle, ToolToggles};

/// Inputs of the text in addition to the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolsTextKey {
    /// The text protocol.
    pub protocol: TextProtocolKind,
    /// The agent's name.
    pub agent: String,
    /// Enables the agent's tools.
    pub tools: ToolToggle,
    /// The tools that are switched on.
    pub toggles: ToolToggles,
}

/// Texts for one registry.
#[derive(Debug, Default)]
pub struct ToolsTextCache {
    state: Mutex<CacheState>,
}

#[derive(Debug, Default)]
struct CacheState {
    registry: Option<ToolFingerprint>,
    /// One entry for each protocol and agent, replaced when the settings change: repeated reloads of the
    /// configuration leave no stale entries.
    texts: HashMap<(&'static str, String), (ToolsTextKey, Arc<ToolsText>)>,
}

impl ToolsTextCache {
    /// The text for `key`, made by `make` if it is not there for this registry.
    pub fn get(
        &self,
        registry: ToolFingerprint,
        key: ToolsTextKey,
        make: impl FnOnce() -> ToolsText,
    ) -> Arc<ToolsText> {
        // A text is put in whole.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.registry != Some(registry) {
            state.registry = Some(registry);
            state.texts.clear();
        }
        let slot = (key.protocol.name(), key.agent.clone());
        match state.texts.get(&slot) {
            Some((made_for, text)) if *made_for == key => text.clone(),
            _ => {
                let text = Arc::new(make());
                state.texts.insert(slot, (key, text.clone()));
                text
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use throughline_tools::{NoArguments, ToolRegistry, tool};

    fn registry(names: &[&str]) -> ToolFingerprint {
        let quiet = |name: &&str| tool(name, "", |_: NoArguments, _| async {});
        let builder =
            names.iter().map(quiet).fold(ToolRegistry::builder(), |builder, tool| builder.tool(tool));
        builder.build().unwrap_or_default().fingerprint()
    }

    #[test]
    fn tools_text_is_rebuilt_only_when_its_key_changes() {
        let cache = ToolsTextCache::default();
        let made = Cell::new(0);
        let (one, two) = (registry(&["a.b"]), registry(&["a.b", "c.d"]));
        let key = |agent: &str, protocol: TextProtocolKind, toggles: ToolToggles| ToolsTextKey {
            protocol,
            agent: agent.to_owned(),
            tools: ToolToggle::On,
            toggles,
        };
        let plain = || key("a", TextProtocolKind::Vcp, ToolToggles::default());
        let check = |why: &str, registry: ToolFingerprint, key: ToolsTextKey, makings: usize| {
            cache.get(registry, key, || {
                made.set(made.get() + 1);
                ToolsText::default()
            });
            assert_eq!(made.get(), makings, "{why}");
        };
        check("the first time", one, plain(), 1);
        check("nothing has changed", one, plain(), 1);
        check("another protocol", one, key("a", TextProtocolKind::Xml, ToolToggles::default()), 2);
        check("another agent", one, key("b", TextProtocolKind::Vcp, ToolToggles::default()), 3);
        check("the others are kept", one, plain(), 3);
        check(
            "other toggles",
            one,
            key("a", TextProtocolKind::Vcp, ToolToggles::default().set("a", ToolToggle::Off)),
            4,
        );
        check("the old toggles again", one, plain(), 5);
        check("a tool has come", two, plain(), 6);
        check("for everybody", two, key("b", TextProtocolKind::Vcp, ToolToggles::default()), 7);
        check("a tool has gone", one, plain(), 8);
        assert_eq!(
            cache.state.lock().unwrap().texts.len(),
            1,
            "what belongs to another registry is not kept"
        );
    }
}
