//! `throughline connect`: a model of one's own, step by step: which, with which key, does it answer, who uses it. On a terminal
//! it asks; everything can be said by flags. The file is written, comments kept; the key goes to the data folder. R: O4, R4

mod ask;
mod file;

use crate::args::{Choice, Connect};
use crate::exit::{Ended, Exit, Failure};
use crate::messages::{self, Lang, Words};
use crate::setup;
use file::Change;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::time::Duration;
use throughline::config::{Connection, OwnAddress, pasted_key};
use throughline::{KeyOrigin, ProbeFailure, Secret, Upstream, known};
use throughline_wire::visible;

/// How long an upstream may take to say which models it has.
const LIST_MAX: Duration = Duration::from_secs(15);
/// How long a model may take for its first word. One on this machine may have to be loaded.
const WORD_MAX: Duration = Duration::from_secs(90);
/// So many models are listed to be chosen by number.
const LISTED_MAX: usize = 30;
/// Written when no other file is named.
const CONFIG_FILE: &str = "throughline.toml";

/// Connects one.
pub async fn run(args: &Connect) -> Ended {
    let words = Words(Lang::of_environment());
    let is_asked = io::stdin().is_terminal() && io::stderr().is_terminal();
    let name = match (&args.upstream, is_asked) {
        (Some(name), _) => name.clone(),
        (None, true) => ask::which(words)?,
        (None, false) => {
            ask::list();
            return Err(words.connect_none());
        }
    };
    if args.forget {
        return forget(&name, words);
    }
    let mut connecting = Connecting::of(args, &name, words)?;
    let key = connecting.key(args, is_asked)?;
    let models = connecting.test().await?;
    let model = match &args.model {
        Some(model) => Some(model.strip_prefix(&format!("{name}/")).unwrap_or(model).to_owned()),
        None if is_asked => ask::model(&models, LISTED_MAX, words)?,
        None => Some(models).filter(|models| models.len() == 1).and_then(|mut models| models.pop()),
    };
    if let Some(model) = &model {
        let answered = connecting.upstream.answers(model, WORD_MAX).await;
        answered.map_err(|error| connecting.failed(&error))?;
        say(&words.connect_spoke(model));
    }
    connecting.keep(key)?;
    connecting.write(args, model.as_deref())?;
    let command = match &model {
        Some(_) if args.agent == throughline::config::DEFAULT_AGENT => "throughline chat".to_owned(),
        Some(_) => format!("throughline chat --agent {}", args.agent),
        None => format!("throughline chat --model {name}/MODEL"),
    };
    crate::output::text(&words.connect_next(&command)).map_err(|error| messages::output_failed(&error))?;
    Ok(Exit::Done)
}

fn forget(name: &str, words: Words) -> Ended {
    let file = setup::connected_file().ok_or_else(messages::no_data_folder)?;
    match file.forget(name).map_err(|error| messages::setup(&error))? {
        Some(_) => crate::output::text(&words.connect_forgotten(name)),
        None => return Err(words.connect_nothing(name)),
    }
    .map_err(|error| messages::output_failed(&error))?;
    Ok(Exit::Done)
}

/// What is done, a line each, on standard error. What upstreams say may hold anything.
fn say(line: &str) {
    eprintln!("{}", visible::escape(line));
}

/// The upstream that is to be connected, as it is now.
struct Connecting {
    name: String,
    title: String,
    key_url: Option<&'static str>,
    upstream: Upstream,
    own: Option<OwnAddress>,
    words: Words,
}

impl Connecting {
    fn of(args: &Connect, name: &str, words: Words) -> Result<Self, Failure> {
        let choice = Choice { config: args.config.clone(), ..Choice::default() };
        let own = match (&args.base_url, args.api) {
            (Some(base_url), Some(dialect)) => Some(OwnAddress { dialect, base_url: base_url.clone() }),
            _ => None,
        };
        let mut connected = setup::connected()?;
        let kept = connected.get(name).cloned().unwrap_or_default();
        connected = connected.with(name, Connection { own: own.clone().or(kept.own), ..kept });
        let mut settings = setup::settings_over(&choice, None, None, &connected)?;
        let unknown = |error: throughline::UpstreamError| words.connect_unknown(&error.to_string());
        let mut upstream = match (settings.upstreams.remove(name), &own) {
            (_, Some(own)) => Upstream::new(name, own.dialect, &own.base_url).map_err(unknown)?,
            (Some(upstream), None) => upstream,
            (None, None) => Upstream::known(name).map_err(unknown)?,
        };
        if let Some(variable) = &args.key_env {
            upstream = upstream.key_from(variable);
        }
        let row = known::known(name).filter(|_| own.is_none());
        let title = row.as_ref().map_or_else(|| name.to_owned(), |row| row.title.to_owned());
        let key_url = row.and_then(|row| row.key_url);
        Ok(Self { name: name.to_owned(), title, key_url, upstream, own, words })
    }

    /// Sees to it that the upstream has its key; the one that is to be kept, if it was given now.
    fn key(&mut self, args: &Connect, is_asked: bool) -> Result<Option<Secret>, Failure> {
        let words = self.words;
        let origin = self.upstream.key_origin();
        if let (Some(KeyOrigin::Environment), Some(variable), false) =
            (origin, self.upstream.key_variable(), args.key_stdin)
        {
            say(&words.connect_key_set(variable));
            return Ok(None);
        }
        let is_needed = self.upstream.missing_key().is_some();
        let may_have = self.own.is_some() || is_needed || origin.is_some();
        let given = if args.key_stdin {
            Some(ask::line()?)
        } else if is_asked && args.key_env.is_none() && may_have {
            if let Some(url) = self.key_url {
                say(&words.connect_key_at(url));
            }
            let prompt = words.connect_key(&self.title, origin == Some(KeyOrigin::Stored), is_needed);
            Some(ask::hidden(&prompt)?).filter(|key| !key.trim().is_empty())
        } else {
            None
        };
        match given {
            Some(text) => {
                let key = pasted_key(&text).map_err(|why| words.connect_bad_key(why))?;
                self.upstream = self.upstream.clone().key(key.clone());
                Ok(Some(key))
            }
            None if is_needed => Err(words.connect_no_key(&self.title, self.upstream.missing_key())),
            None => Ok(None),
        }
    }

    /// Asks which models it has.
    async fn test(&self) -> Result<Vec<String>, Failure> {
        let words = self.words;
        say(&words.connect_asking(&self.title));
        match self.upstream.models(LIST_MAX).await {
            Ok(models) => {
                say(&words.connect_listed(&self.title, models.len()));
                Ok(models)
            }
            Err(error) if error.failure == ProbeFailure::NotListed => {
                say(&words.connect_unlisted(&self.title));
                Ok(Vec::new())
            }
            Err(error) => Err(self.failed(&error)),
        }
    }

    fn failed(&self, error: &throughline::ProbeError) -> Failure {
        self.words.connect_failed(&self.title, self.key_url, error)
    }

    /// Keeps the key where only its owner reads it.
    fn keep(&self, key: Option<Secret>) -> Result<(), Failure> {
        let Some(key) = key else { return Ok(()) };
        let file = setup::connected_file().ok_or_else(messages::no_data_folder)?;
        // Where it is stands in the configuration file; here the key alone.
        let connection = Connection { key: Some(key), own: None };
        file.keep(&self.name, connection).map_err(|error| messages::setup(&error))?;
        say(&self.words.connect_kept(file.path()));
        Ok(())
    }

    /// Writes what belongs into the configuration file; nothing, if nothing does.
    fn write(&self, args: &Connect, model: Option<&str>) -> Result<(), Failure> {
        let path = match &args.config {
            Some(path) if !path.as_os_str().is_empty() => path.clone(),
            _ => PathBuf::from(CONFIG_FILE),
        };
        let model = model.map(|model| format!("{}/{model}", self.name));
        let change = Change {
            upstream: &self.name,
            own: self.own.as_ref(),
            key_env: args.key_env.as_deref(),
            agent: model.as_deref().map(|model| (args.agent.as_str(), model)),
        };
        if change.is_nothing() {
            return Ok(());
        }
        let before = change.write_to(&path).map_err(|why| self.words.connect_unwritten(&path, &why))?;
        if let Some((agent, model)) = change.agent {
            say(&self.words.connect_written(&path, agent, model, before.as_deref()));
        }
        Ok(())
    }
}
