//! `throughline connect`: connects an upstream step by step: provider, key, test of a model, agent. On a
//! terminal it asks; every answer can be given as a flag. The configuration file is edited, comments stay;
//! the key goes to the data folder.

pub(crate) mod config_edit;
mod local;
mod prompts;

use crate::args::{ConnectArgs, ModelArgs};
use crate::exit::{CliExit, CliFailure, CommandResult};
use crate::messages::{self, UiLanguage, UiText};
use crate::output::errln;
use crate::setup;
use config_edit::ConfigChange;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::time::Duration;
use throughline::config::{CustomEndpoint, StoredUpstream, parse_pasted_key};
use throughline::{KeyOrigin, ProbeFailure, Secret, Upstream, providers};
use throughline_wire::display_escape;

/// Time limit for an upstream to list its models.
const LIST_TIMEOUT: Duration = Duration::from_secs(15);
/// Time limit for a model's first token. A local model may have to be loaded first.
const FIRST_TOKEN_TIMEOUT: Duration = Duration::from_secs(90);
/// Maximum number of models that are listed for a choice by number.
const LISTED_MODELS_MAX: usize = 30;
/// Written when no other file is named.
const CONFIG_FILE: &str = "throughline.toml";

pub(crate) async fn run(args: &ConnectArgs) -> CommandResult {
    let words = UiText(UiLanguage::current());
    let is_asked = io::stdin().is_terminal() && io::stderr().is_terminal();
    let name = match (&args.upstream, is_asked) {
        (Some(name), _) => name.clone(),
        (None, true) => prompts::ask_upstream(&local::ready(args.config.clone()).await?, words)?,
        (None, false) => {
            let ready = local::ready(args.config.clone()).await?;
            prompts::print_known(&ready, words);
            return Err(words.connect_none(ready.example()));
        }
    };
    if args.forget {
        return forget_key(&name, words);
    }
    let mut session = ConnectSession::of(args, &name, words)?;
    let key = session.resolve_key(args, is_asked)?;
    let models = session.list_models().await?;
    let model = match &args.model {
        Some(model) => Some(model.strip_prefix(&format!("{name}/")).unwrap_or(model).to_owned()),
        None if is_asked => prompts::ask_model(&models, LISTED_MODELS_MAX, words)?,
        None => Some(models).filter(|models| models.len() == 1).and_then(|mut models| models.pop()),
    };
    if let Some(model) = &model {
        let answered = session.upstream.check_model(model, FIRST_TOKEN_TIMEOUT).await;
        answered.map_err(|error| session.probe_failure(&error))?;
        print_status(&words.connect_answered(model));
    }
    session.store_key(key)?;
    session.write_config(args, model.as_deref())?;
    let command = match &model {
        Some(_) if args.agent == throughline::config::DEFAULT_AGENT => "throughline chat".to_owned(),
        Some(_) => format!("throughline chat --agent {}", args.agent),
        None => format!("throughline chat --model {name}/MODEL"),
    };
    crate::output::text(&words.connect_next(&command)).map_err(|error| messages::output_failed(&error))?;
    Ok(CliExit::Done)
}

fn forget_key(name: &str, words: UiText) -> CommandResult {
    let file = setup::connected_file().ok_or_else(messages::no_data_folder)?;
    match file.remove(name).map_err(|error| messages::setup(&error))? {
        Some(_) => crate::output::text(&words.connect_forgotten(name)),
        None => return Err(words.connect_nothing(name)),
    }
    .map_err(|error| messages::output_failed(&error))?;
    Ok(CliExit::Done)
}

/// Prints a line of progress to standard error. Text of upstreams may contain control characters.
fn print_status(line: &str) {
    errln!("{}", display_escape::escape(line));
}

/// The upstream that is to be connected, as it is now.
struct ConnectSession {
    name: String,
    title: String,
    key_url: Option<&'static str>,
    upstream: Upstream,
    own_address: Option<CustomEndpoint>,
    words: UiText,
}

impl ConnectSession {
    fn of(args: &ConnectArgs, name: &str, words: UiText) -> Result<Self, CliFailure> {
        let choice = ModelArgs { config: args.config.clone(), ..ModelArgs::default() };
        let own_address = match (&args.base_url, args.api) {
            (Some(base_url), Some(dialect)) => Some(CustomEndpoint { dialect, base_url: base_url.clone() }),
            _ => None,
        };
        let mut connected = setup::connected()?;
        let stored = connected.get(name).cloned().unwrap_or_default();
        connected = connected
            .with(name, StoredUpstream { endpoint: own_address.clone().or(stored.endpoint), ..stored });
        let mut settings = setup::load_settings_over(&choice, None, None, &connected)?;
        let unknown = |error: throughline::UpstreamConfigError| words.connect_unknown(&error.to_string());
        let mut upstream = match (settings.upstreams.remove(name), &own_address) {
            (_, Some(own_address)) => {
                Upstream::new(name, own_address.dialect, &own_address.base_url).map_err(unknown)?
            }
            (Some(upstream), None) => upstream,
            (None, None) => Upstream::known(name).map_err(unknown)?,
        };
        if let Some(variable) = &args.key_env {
            upstream = upstream.key_from_variable(variable);
        }
        let row = providers::find(name).filter(|_| own_address.is_none());
        let title = row.as_ref().map_or_else(|| name.to_owned(), |row| row.title.to_owned());
        let key_url = row.and_then(|row| row.key_url);
        Ok(Self { name: name.to_owned(), title, key_url, upstream, own_address, words })
    }

    /// Ensures that the upstream has its key; returns a key that was entered now and must be stored.
    fn resolve_key(&mut self, args: &ConnectArgs, is_asked: bool) -> Result<Option<Secret>, CliFailure> {
        let words = self.words;
        let origin = self.upstream.key_origin();
        if let (Some(KeyOrigin::Environment), Some(variable), false) =
            (origin, self.upstream.key_variable(), args.key_stdin)
        {
            print_status(&words.connect_key_set(variable));
            return Ok(None);
        }
        let is_needed = self.upstream.missing_key().is_some();
        let may_have = self.own_address.is_some() || is_needed || origin.is_some();
        let entered = if args.key_stdin {
            Some(prompts::read_line()?)
        } else if is_asked && args.key_env.is_none() && may_have {
            if let Some(url) = self.key_url {
                print_status(&words.connect_key_at(url));
            }
            let prompt = words.connect_key(&self.title, origin == Some(KeyOrigin::Stored), is_needed);
            Some(prompts::read_hidden(&prompt)?).filter(|key| !key.trim().is_empty())
        } else {
            None
        };
        match entered {
            Some(text) => {
                let key = parse_pasted_key(&text).map_err(|why| words.connect_bad_key(why))?;
                self.upstream = self.upstream.clone().key(key.clone());
                Ok(Some(key))
            }
            None if is_needed => Err(words.connect_no_key(&self.title, self.upstream.missing_key())),
            None => Ok(None),
        }
    }

    /// Lists the models of the upstream.
    async fn list_models(&self) -> Result<Vec<String>, CliFailure> {
        let words = self.words;
        print_status(&words.connect_asking(&self.title));
        match self.upstream.models(LIST_TIMEOUT).await {
            Ok(models) => {
                print_status(&words.connect_listed(&self.title, models.len()));
                Ok(models)
            }
            Err(error) if error.failure == ProbeFailure::NotListed => {
                print_status(&words.connect_unlisted(&self.title));
                Ok(Vec::new())
            }
            Err(error) => Err(self.probe_failure(&error)),
        }
    }

    fn probe_failure(&self, error: &throughline::ProbeError) -> CliFailure {
        self.words.connect_failed(&self.title, self.key_url, error)
    }

    /// Keeps the key where only its owner reads it.
    fn store_key(&self, key: Option<Secret>) -> Result<(), CliFailure> {
        let Some(key) = key else { return Ok(()) };
        let file = setup::connected_file().ok_or_else(messages::no_data_folder)?;
        // The address is in the configuration file; only the key is stored here.
        let connection = StoredUpstream { key: Some(key), endpoint: None };
        file.save(&self.name, connection).map_err(|error| messages::setup(&error))?;
        print_status(&self.words.connect_key_stored(file.path()));
        Ok(())
    }

    /// Writes what belongs into the configuration file; nothing, if nothing does.
    fn write_config(&self, args: &ConnectArgs, model: Option<&str>) -> Result<(), CliFailure> {
        let path = match &args.config {
            Some(path) if !path.as_os_str().is_empty() => path.clone(),
            _ => PathBuf::from(CONFIG_FILE),
        };
        let model = model.map(|model| format!("{}/{model}", self.name));
        let change = ConfigChange {
            upstream: &self.name,
            own_address: self.own_address.as_ref(),
            key_env: args.key_env.as_deref(),
            agent: model.as_deref().map(|model| (args.agent.as_str(), model)),
            measured: &[],
        };
        if change.is_nothing() {
            return Ok(());
        }
        let previous_model =
            change.write_to(&path).map_err(|why| self.words.connect_unwritten(&path, &why))?;
        if let Some((agent, model)) = change.agent {
            print_status(&self.words.connect_written(&path, agent, model, previous_model.as_deref()));
        }
        Ok(())
    }
}
