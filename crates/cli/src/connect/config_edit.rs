//! Edits that `throughline connect` and `throughline probe` make in `throughline.toml`. Comments, order and all other values stay.

use crate::messages;
use std::path::Path;
use throughline::MeasuredSetting;
use throughline::config::{ConfigFile, CustomEndpoint};
use toml_edit::{DocumentMut, InlineTable, Item, Table, TableLike, Value};

/// Values to write.
pub(crate) struct ConfigChange<'a> {
    pub(crate) upstream: &'a str,
    /// Address of the upstream, if it is not built in.
    pub(crate) own_address: Option<&'a CustomEndpoint>,
    /// The variable that holds its key, if it is not the usual one.
    pub(crate) key_env: Option<&'a str>,
    /// An agent, and its model as `upstream/model`.
    pub(crate) agent: Option<(&'a str, &'a str)>,
    /// Settings of the upstream that were measured.
    pub(crate) measured: &'a [MeasuredSetting],
}

impl ConfigChange<'_> {
    /// The file stays as it is.
    pub(crate) fn is_nothing(&self) -> bool {
        self.own_address.is_none()
            && self.key_env.is_none()
            && self.agent.is_none()
            && self.measured.is_empty()
    }

    /// Changes the file, or makes it; the agent's model before. What cannot be read, or would not be a configuration, stays.
    pub(crate) fn write_to(&self, path: &Path) -> Result<Option<String>, String> {
        // A link keeps pointing to where it points.
        let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error.to_string()),
        };
        let (written, previous) = self.apply_to(&text)?;
        ConfigFile::parse(&path.display().to_string(), &written)
            .map_err(|error| messages::config(&error).what)?;
        replace_file(path, &written).map_err(|error| error.to_string())?;
        Ok(previous)
    }

    fn apply_to(&self, text: &str) -> Result<(String, Option<String>), String> {
        let mut document: DocumentMut =
            text.parse().map_err(|error: toml_edit::TomlError| error.to_string())?;
        let root = document.as_table_mut();
        if self.own_address.is_some() || self.key_env.is_some() || !self.measured.is_empty() {
            let section = section(root, "upstreams", self.upstream)?;
            match self.own_address {
                Some(CustomEndpoint { dialect, base_url }) => {
                    set_value(section, "dialect", dialect.name().into());
                    set_value(section, "base_url", base_url.as_str().into());
                }
                None if !section.contains_key("base_url") && !section.contains_key("known") => {
                    set_value(section, "known", self.upstream.into())
                }
                None => {}
            }
            if let Some(variable) = self.key_env {
                set_value(section, "key_env", variable.into());
            }
            set_measured(section, self.measured)?;
        }
        let mut previous = None;
        if let Some((agent, model)) = self.agent {
            let section = section(root, "agents", agent)?;
            previous = section.get("model").and_then(Item::as_str).map(str::to_owned);
            set_value(section, "model", model.into());
            if previous.is_none() && !section.contains_key("tool_call") {
                let tools: InlineTable = [("enabled", true)].into_iter().collect();
                set_value(section, "tool_call", tools.into());
            }
        }
        Ok((document.to_string(), previous))
    }
}

/// Settings of an upstream; those of its profile go into the table or the inline table that is there.
fn set_measured(section: &mut dyn TableLike, settings: &[MeasuredSetting]) -> Result<(), String> {
    for MeasuredSetting { key, value } in settings {
        let value = match value {
            serde_json::Value::Bool(flag) => Value::from(*flag),
            serde_json::Value::String(text) => Value::from(text.as_str()),
            other => return Err(messages::no_such_value(key, other)),
        };
        match key.strip_prefix("profile.") {
            None => set_value(section, key, value),
            Some(name) => {
                let profile =
                    section.entry("profile").or_insert_with(|| Item::Value(InlineTable::new().into()));
                let profile = profile.as_table_like_mut().ok_or_else(|| messages::no_table("profile"))?;
                set_value(profile, name, value);
                // A value that was the last one has the space before the brace.
                if let Some(profile) = section.get_mut("profile").and_then(Item::as_inline_table_mut) {
                    profile.fmt();
                }
            }
        }
    }
    Ok(())
}

/// Replaces a file as a whole. It keeps its permissions, and a link keeps pointing to where it points.
pub(crate) fn replace_file(path: &Path, text: &str) -> std::io::Result<()> {
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let temp_path = path.with_extension("toml.new");
    std::fs::write(&temp_path, text)?;
    if let Ok(metadata) = std::fs::metadata(path) {
        std::fs::set_permissions(&temp_path, metadata.permissions())?;
    }
    std::fs::rename(&temp_path, path)
}

/// `[outer.name]`, made if it is not there.
fn section<'d>(root: &'d mut Table, outer: &str, name: &str) -> Result<&'d mut dyn TableLike, String> {
    let group = root.entry(outer).or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let group = group.as_table_like_mut().ok_or_else(|| messages::no_table(outer))?;
    let item = group.entry(name).or_insert_with(|| Item::Table(Table::new()));
    item.as_table_like_mut().ok_or_else(|| messages::no_table(&format!("{outer}.{name}")))
}

/// Replaces a value. A trailing comment stays.
fn set_value(table: &mut dyn TableLike, key: &str, mut value: Value) {
    match table.get_mut(key) {
        Some(metadata) => {
            if let Some(old) = metadata.as_value() {
                *value.decor_mut() = old.decor().clone();
            }
            *metadata = Item::Value(value);
        }
        None => {
            table.insert(key, Item::Value(value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_wire::Dialect;

    fn check(previous: &str, change: &ConfigChange<'_>, after: &str) {
        let (written, _) = change.apply_to(previous).unwrap();
        assert_eq!(written, after);
        ConfigFile::parse("throughline.toml", &written).unwrap();
        assert_eq!(change.apply_to(&written).unwrap().0, after, "written again it is the same");
    }

    const MODEL: ConfigChange<'_> = ConfigChange {
        upstream: "deepseek",
        own_address: None,
        key_env: None,
        agent: Some(("default", "deepseek/deepseek-chat")),
        measured: &[],
    };

    #[test]
    fn config_edit_keeps_comments_and_order() {
        check(
            "# Mine.\n[tools.files]\nroots = [\"/tmp\"] # only these\n\n# Who answers.\n[agents.default]\n\
             # The old one was dear.\nmodel  = \"openai/gpt-5\"   # for now\nprompt = \"Hi\"\n\n[agents.default.tool_call]\n\
             enabled = false\n",
            &MODEL,
            "# Mine.\n[tools.files]\nroots = [\"/tmp\"] # only these\n\n# Who answers.\n[agents.default]\n\
             # The old one was dear.\nmodel  = \"deepseek/deepseek-chat\"   # for now\nprompt = \"Hi\"\n\n\
             [agents.default.tool_call]\nenabled = false\n",
        );
    }

    #[test]
    fn config_edit_creates_missing_tables() {
        let whole = "[agents.default]\nmodel = \"deepseek/deepseek-chat\"\ntool_call = { enabled = true }\n";
        check("", &MODEL, whole);
        check(
            "agents = { default = { model = \"demo\" } }\n",
            &MODEL,
            "agents = { default = { model = \"deepseek/deepseek-chat\" } }\n",
        );
        let own = CustomEndpoint { dialect: Dialect::Ollama, base_url: "http://10.0.0.5:11434".into() };
        let change = ConfigChange {
            upstream: "mine",
            own_address: Some(&own),
            key_env: Some("MINE_KEY"),
            agent: None,
            measured: &[],
        };
        check(
            "[agents.default]\nmodel = \"demo\"\n",
            &change,
            "[agents.default]\nmodel = \"demo\"\n\n[upstreams.mine]\ndialect = \"ollama\"\n\
             base_url = \"http://10.0.0.5:11434\"\nkey_env = \"MINE_KEY\"\n",
        );
        let other = ConfigChange { key_env: Some("WORK_KEY"), agent: None, ..MODEL };
        check("", &other, "[upstreams.deepseek]\nknown = \"deepseek\"\nkey_env = \"WORK_KEY\"\n");
    }

    #[test]
    fn measured_settings_are_written_into_the_profile() {
        let measured = [
            MeasuredSetting { key: "streaming", value: "off".into() },
            MeasuredSetting { key: "profile.vision", value: false.into() },
            MeasuredSetting { key: "profile.leaked_calls", value: "run".into() },
        ];
        let change = ConfigChange { agent: None, measured: &measured, ..MODEL };
        check(
            "",
            &change,
            "[upstreams.deepseek]\nknown = \"deepseek\"\nstreaming = \"off\"\n\
             profile = { vision = false, leaked_calls = \"run\" }\n",
        );
        check(
            "[upstreams.deepseek] # mine\nknown = \"openai\"\n# seen in May\nprofile = { audio = true, vision = true } # so far\n",
            &change,
            "[upstreams.deepseek] # mine\nknown = \"openai\"\n# seen in May\n\
             profile = { audio = true, vision = false, leaked_calls = \"run\" } # so far\nstreaming = \"off\"\n",
        );
        check(
            "[upstreams.deepseek]\nknown = \"deepseek\"\n\n[upstreams.deepseek.profile]\naudio = true # it hears\n",
            &change,
            "[upstreams.deepseek]\nknown = \"deepseek\"\nstreaming = \"off\"\n\n[upstreams.deepseek.profile]\n\
             audio = true # it hears\nvision = false\nleaked_calls = \"run\"\n",
        );
    }

    #[test]
    fn invalid_config_is_not_edited() {
        assert!(MODEL.apply_to("[agents").is_err());
        assert!(MODEL.apply_to("agents = 3").unwrap_err().contains("not a table"));
    }
}
