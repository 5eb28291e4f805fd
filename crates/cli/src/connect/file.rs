//! What `throughline connect` writes into `throughline.toml`: a value here and there. Comments, order and everything else stay.

use std::path::Path;
use throughline::config::{File, OwnAddress};
use toml_edit::{DocumentMut, InlineTable, Item, Table, TableLike, Value};

/// What is to stand there.
pub struct Change<'a> {
    pub upstream: &'a str,
    /// Its address, if it is not known by name.
    pub own: Option<&'a OwnAddress>,
    /// The variable that holds its key, if it is not the usual one.
    pub key_env: Option<&'a str>,
    /// An agent, and its model as `upstream/model`.
    pub agent: Option<(&'a str, &'a str)>,
}

impl Change<'_> {
    /// The file stays as it is.
    pub fn is_nothing(&self) -> bool {
        self.own.is_none() && self.key_env.is_none() && self.agent.is_none()
    }

    /// Changes the file, or makes it; the agent's model before. What cannot be read, or would not be a configuration, stays.
    pub fn write_to(&self, path: &Path) -> Result<Option<String>, String> {
        // A link keeps pointing to where it points.
        let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error.to_string()),
        };
        let (written, before) = self.over(&text)?;
        File::parse(&path.display().to_string(), &written).map_err(|error| error.to_string())?;
        let io = |error: std::io::Error| error.to_string();
        let beside = path.with_extension("toml.new");
        std::fs::write(&beside, &written).map_err(io)?;
        if let Ok(there) = std::fs::metadata(path) {
            std::fs::set_permissions(&beside, there.permissions()).map_err(io)?;
        }
        std::fs::rename(&beside, path).map_err(io)?;
        Ok(before)
    }

    fn over(&self, text: &str) -> Result<(String, Option<String>), String> {
        let mut document: DocumentMut =
            text.parse().map_err(|error: toml_edit::TomlError| error.to_string())?;
        let root = document.as_table_mut();
        if self.own.is_some() || self.key_env.is_some() {
            let section = section(root, "upstreams", self.upstream)?;
            match self.own {
                Some(OwnAddress { dialect, base_url }) => {
                    set(section, "dialect", dialect.name().into());
                    set(section, "base_url", base_url.as_str().into());
                }
                None if !section.contains_key("base_url") => set(section, "known", self.upstream.into()),
                None => {}
            }
            if let Some(variable) = self.key_env {
                set(section, "key_env", variable.into());
            }
        }
        let mut before = None;
        if let Some((agent, model)) = self.agent {
            let section = section(root, "agents", agent)?;
            before = section.get("model").and_then(Item::as_str).map(str::to_owned);
            set(section, "model", model.into());
            if before.is_none() && !section.contains_key("tool_call") {
                let tools: InlineTable = [("enabled", true)].into_iter().collect();
                set(section, "tool_call", tools.into());
            }
        }
        Ok((document.to_string(), before))
    }
}

/// `[outer.name]`, made if it is not there.
fn section<'d>(root: &'d mut Table, outer: &str, name: &str) -> Result<&'d mut dyn TableLike, String> {
    let group = root.entry(outer).or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let group = group.as_table_like_mut().ok_or_else(|| format!("`{outer}` is not a table"))?;
    let item = group.entry(name).or_insert_with(|| Item::Table(Table::new()));
    item.as_table_like_mut().ok_or_else(|| format!("`{outer}.{name}` is not a table"))
}

/// Puts a value in the place of another one. A comment behind that one stays.
fn set(table: &mut dyn TableLike, key: &str, mut value: Value) {
    match table.get_mut(key) {
        Some(there) => {
            if let Some(old) = there.as_value() {
                *value.decor_mut() = old.decor().clone();
            }
            *there = Item::Value(value);
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

    fn check(before: &str, change: &Change<'_>, after: &str) {
        let (written, _) = change.over(before).unwrap();
        assert_eq!(written, after);
        File::parse("throughline.toml", &written).unwrap();
        assert_eq!(change.over(&written).unwrap().0, after, "written again it is the same");
    }

    const MODEL: Change<'_> = Change {
        upstream: "deepseek",
        own: None,
        key_env: None,
        agent: Some(("default", "deepseek/deepseek-chat")),
    };

    // R: O4
    #[test]
    fn comments_and_order_stay() {
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

    // R: O4
    #[test]
    fn what_is_not_there_is_made() {
        let whole = "[agents.default]\nmodel = \"deepseek/deepseek-chat\"\ntool_call = { enabled = true }\n";
        check("", &MODEL, whole);
        check(
            "agents = { default = { model = \"demo\" } }\n",
            &MODEL,
            "agents = { default = { model = \"deepseek/deepseek-chat\" } }\n",
        );
        let own = OwnAddress { dialect: Dialect::Ollama, base_url: "http://10.0.0.5:11434".into() };
        let change = Change { upstream: "mine", own: Some(&own), key_env: Some("MINE_KEY"), agent: None };
        check(
            "[agents.default]\nmodel = \"demo\"\n",
            &change,
            "[agents.default]\nmodel = \"demo\"\n\n[upstreams.mine]\ndialect = \"ollama\"\n\
             base_url = \"http://10.0.0.5:11434\"\nkey_env = \"MINE_KEY\"\n",
        );
        let other = Change { key_env: Some("WORK_KEY"), agent: None, ..MODEL };
        check("", &other, "[upstreams.deepseek]\nknown = \"deepseek\"\nkey_env = \"WORK_KEY\"\n");
    }

    #[test]
    fn what_cannot_be_read_stays() {
        assert!(MODEL.over("[agents").is_err());
        assert!(MODEL.over("agents = 3").unwrap_err().contains("not a table"));
    }
}
