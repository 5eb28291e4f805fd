//! The documents' claims about what the program has, has not yet, and does when nothing is named.

use super::{read, root};
use assert_cmd::Command;
use throughline::config::{AppSettings, ConfigError, ConfigFile, ConfigFlags, EnvVars, resolve};

/// Words for a feature, and a file that exists only if the program has the feature.
const FEATURES: [(&[&str], &str); 14] = [
    (&["single sign-on", "sign-on", "openid", "oidc"], "crates/server/src/oidc/mod.rs"),
    (&["several users", "several people", "quotas"], "crates/cli/src/users.rs"),
    (&["cohere"], "crates/wire/src/dialect/cohere/encode.rs"),
    (&["bedrock"], "crates/wire/src/dialect/bedrock/encode.rs"),
    (&["archive", "packages to install"], "xtask/src/dist.rs"),
    (&["container image", "docker"], "ops/Dockerfile"),
    (&["tls", "https"], "crates/cli/tests/it/shipped.rs"),
    (&["backup"], "crates/cli/src/backup/mod.rs"),
    (&["probe", "measure"], "crates/cli/src/probe.rs"),
    (&["ratings", "rating"], "crates/server/src/api/rating.rs"),
    (&["web search"], "crates/tools/src/web_search/mod.rs"),
    (&["text rules"], "crates/engine/src/text_rules/mod.rs"),
    (&["vcp"], "crates/tools/src/vcp_plugin/loader.rs"),
    (&["sound", "audio"], "web/app/src/voice/player.ts"),
];

/// Names of all commands, as the help lists them.
fn commands() -> Vec<String> {
    let output = Command::cargo_bin("throughline").unwrap().arg("--help").env("LC_ALL", "C.UTF-8").output();
    let help = String::from_utf8(output.unwrap().stdout).unwrap();
    let listed = help.split("Commands:\n").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap();
    let names = listed.lines().filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

/// The items of both lists of what is missing.
fn missing_items() -> Vec<String> {
    let readme = read("README.md");
    let sentence = readme.split("**Not there yet**: ").nth(1).expect("the list of the README");
    let sentence = sentence.split(". See").next().unwrap_or_default().replace('\n', " ");
    let changelog = read("CHANGELOG.md");
    let list = changelog.split("### Not yet\n").nth(1).expect("the list of the CHANGELOG");
    let list = list.split("\n#").next().unwrap_or_default();
    let items = list.split("\n- ").chain(sentence.split(", "));
    items.map(|item| item.trim().to_lowercase()).filter(|item| !item.is_empty()).collect()
}

#[test]
fn missing_features_list_names_no_existing_feature() {
    for (_, file) in FEATURES {
        assert!(root().join(file).exists(), "{file} has another name now");
    }
    let items = missing_items();
    assert!(items.len() >= 7, "{items:?}");
    for item in items {
        let named = |feature: &str| {
            let after = item.split(feature).nth(1)?;
            (!after.starts_with(char::is_alphabetic)).then(|| feature.to_owned())
        };
        let built = FEATURES.iter().flat_map(|(words, _)| *words).find_map(|word| named(word));
        assert_eq!(built, None, "`{item}` is there");
        let command = commands().into_iter().find(|command| item.contains(&format!("`{command}`")));
        assert_eq!(command, None, "`{item}` is there");
    }
}

#[test]
fn changelog_names_every_command() {
    let changelog = read("CHANGELOG.md");
    let entry = changelog.split("- **The command**: ").nth(1).and_then(|rest| rest.split("\n- ").next());
    let entry = entry.expect("an entry for the command");
    let commands = commands();
    assert!(commands.len() > 20, "{commands:?}");
    for command in commands {
        assert!(entry.contains(&format!("`{command}`")), "{command} is not in: {entry}");
    }
}

/// The settings of a file with these agents, each with the demo model.
fn with_agents(names: &[&str]) -> Result<AppSettings, ConfigError> {
    let sections: String = names.iter().map(|name| format!("[agents.{name}]\nmodel = \"demo\"\n")).collect();
    let file = ConfigFile::parse("throughline.toml", &sections)?;
    resolve(Some(file), &EnvVars::new(), &ConfigFlags::default())
}

#[test]
fn default_agent_is_chosen_as_documented() {
    let page = read("docs/configuration.md").replace('\n', " ");
    assert!(
        page.contains("`default` answers unless a request or `--agent` names another agent."),
        "the page"
    );
    assert!(page.contains("If the file has exactly one agent, that agent answers"), "the page");
    assert_eq!(with_agents(&["helper"]).unwrap().agent, "helper");
    assert_eq!(with_agents(&["aaa", "default"]).unwrap().agent, "default");
    let error = with_agents(&["aaa", "helper"]).unwrap_err();
    assert!(error.message.contains("none is named `default`"), "{error}");
}

/// The row of the check of other platforms; nothing if it was never run.
fn platforms_row() -> Option<String> {
    let document = read("docs/verification.md");
    document.lines().find(|line| line.starts_with("| platforms |")).map(str::to_owned)
}

/// A platform counts as compiled only where the check has compiled it.
#[test]
fn platform_table_matches_the_verification_report() {
    let page = read("docs/installing.md");
    let row = platforms_row().unwrap_or_default();
    let (compiled, _) = row.split_once("not built here").unwrap_or((&row, ""));
    let mut named = 0;
    for line in page.lines().filter(|line| line.starts_with("| ")) {
        let Some(target) = line.split('`').nth(1).filter(|code| code.matches('-').count() >= 2) else {
            continue;
        };
        let is_compiled = compiled.contains("passed") && compiled.contains(target);
        assert_eq!(line.contains("compiles"), is_compiled, "docs/verification.md and: {line}");
        assert_eq!(line.contains("not built here"), !is_compiled, "{line}");
        named += 1;
    }
    assert_eq!(named, 4);
}
