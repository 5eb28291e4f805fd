//! `throughline probe`: measures an upstream by a handful of small requests, and writes the settings that follow from it.

use crate::args::{ModelArgs, ProbeArgs};
use crate::connect::config_edit::ConfigChange;
use crate::exit::{CliExit, CliFailure, CommandResult};
use crate::messages::{self, UiLanguage, UiText};
use crate::output::errln;
use crate::setup;
use crate::terminal::text::padded;
use std::path::PathBuf;
use std::time::Duration;
use throughline::config::{AppSettings, CustomEndpoint};
use throughline::{
    FeatureVerdict, MEASURE_REQUESTS, MEASURE_REQUESTS_MAX, MeasureOptions, MeasuredSetting, ProbeError,
    Upstream, UpstreamMeasurement, providers,
};
use throughline_wire::display_escape;

/// Time limit for an upstream to list its models.
const LIST_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum number of models named in the error that asks to choose one.
const NAMED_MODELS_MAX: usize = 8;
/// Written when no other file is named.
const CONFIG_FILE: &str = "throughline.toml";

/// Measures one.
pub(crate) async fn run(args: &ProbeArgs) -> CommandResult {
    let words = UiText(UiLanguage::current());
    let session = ProbeSession::of(args, words)?;
    let model = session.choose_model(args).await?;
    let options = MeasureOptions { tokens_max: args.tokens, ..MeasureOptions::default() };
    print_status(&words.probe_begins(&session.upstream.summary(), &model, MEASURE_REQUESTS, args.tokens));
    let mut progress = |step: throughline::MeasureProgress| {
        print_status(&format!("{:>3}/{MEASURE_REQUESTS} {}", step.request, step.purpose));
    };
    let measured = session.upstream.measure(&model, options, &mut progress).await;
    let measured = measured.map_err(|error| session.failure(&error))?;
    debug_assert!(measured.requests <= MEASURE_REQUESTS_MAX);
    if args.json {
        crate::output::json_line(&measured).map_err(|error| messages::output_failed(&error))?;
    } else {
        crate::output::text(&table(&measured, words)).map_err(|error| messages::output_failed(&error))?;
    }
    session.write_or_show(args, &measured)?;
    Ok(CliExit::Done)
}

/// Prints a line of progress to standard error. Text of upstreams may contain control characters.
fn print_status(line: &str) {
    errln!("{}", display_escape::escape(line));
}

struct ProbeSession {
    name: String,
    upstream: Upstream,
    /// Address to write together with the settings, if the file has no entry for the upstream.
    own_address: Option<CustomEndpoint>,
    /// Model from the argument `UPSTREAM/MODEL`, or an agent's.
    model: Option<String>,
    words: UiText,
}

impl ProbeSession {
    fn of(args: &ProbeArgs, words: UiText) -> Result<Self, CliFailure> {
        let (name, model) = match args.upstream.split_once('/') {
            Some((name, model)) => (name.to_owned(), Some(model.to_owned())),
            None => (args.upstream.clone(), None),
        };
        let unknown = |error: throughline::UpstreamConfigError| words.connect_unknown(&error.to_string());
        let mut settings =
            setup::load_settings(&ModelArgs { config: args.config.clone(), ..ModelArgs::default() })?;
        let model = args.model.clone().or(model).or_else(|| model_in_use(&settings, &name));
        let mut own_address = None;
        let mut upstream = match (&args.base_url, args.api) {
            (Some(base_url), Some(dialect)) => {
                own_address = Some(CustomEndpoint { dialect, base_url: base_url.clone() });
                Upstream::new(&name, dialect, base_url).map_err(unknown)?
            }
            _ => match settings.upstreams.remove(&name) {
                Some(upstream) => upstream,
                None => Upstream::known(&name).map_err(unknown)?.key_from_env(),
            },
        };
        if let Some(variable) = &args.key_env {
            upstream = upstream.key_from_variable(variable);
        }
        if own_address.is_none() && providers::find(&name).is_none() {
            let stored = setup::connected()?;
            own_address = stored.get(&name).and_then(|stored| stored.endpoint.clone());
        }
        Ok(Self { name, upstream, own_address, model, words })
    }

    /// The model that is named or in use, else the only one that the upstream lists.
    async fn choose_model(&self, args: &ProbeArgs) -> Result<String, CliFailure> {
        if let Some(model) = &self.model {
            return Ok(model.strip_prefix(&format!("{}/", self.name)).unwrap_or(model).to_owned());
        }
        let models = self.upstream.models(LIST_TIMEOUT).await.map_err(|error| self.failure(&error))?;
        match models.as_slice() {
            [model] => Ok(model.clone()),
            models => {
                let names: Vec<&str> = models.iter().take(NAMED_MODELS_MAX).map(String::as_str).collect();
                Err(self.words.probe_needs_model(&args.upstream, &display_escape::escape(&names.join(", "))))
            }
        }
    }

    fn failure(&self, error: &ProbeError) -> CliFailure {
        let title = providers::find(&self.name).map_or_else(|| self.name.clone(), |row| row.title.to_owned());
        self.words.connect_failed(&title, None, error)
    }

    fn write_or_show(&self, args: &ProbeArgs, measured: &UpstreamMeasurement) -> Result<(), CliFailure> {
        if measured.settings.is_empty() {
            print_status(&self.words.probe_nothing_to_set());
            return Ok(());
        }
        if !args.write {
            errln!("{}", self.words.probe_settings(&settings_text(&self.name, &measured.settings)));
            return Ok(());
        }
        let path = match &args.config {
            Some(path) if !path.as_os_str().is_empty() => path.clone(),
            _ => PathBuf::from(CONFIG_FILE),
        };
        let change = ConfigChange {
            upstream: &self.name,
            own_address: self.own_address.as_ref(),
            key_env: args.key_env.as_deref(),
            agent: None,
            measured: &measured.settings,
        };
        change.write_to(&path).map_err(|why| self.words.connect_unwritten(&path, &why))?;
        print_status(&self.words.probe_written(&path, measured.settings.len()));
        Ok(())
    }
}

/// The model of the first agent that uses this upstream; the default agent comes first.
fn model_in_use(settings: &AppSettings, upstream: &str) -> Option<String> {
    let first = settings.agents.get(&settings.agent);
    let choices = first.into_iter().chain(settings.agents.values()).flat_map(|agent| &agent.models);
    choices.into_iter().find(|choice| choice.name == upstream).map(|choice| choice.model.clone())
}

/// Width of a verdict, in columns.
const VERDICT_WIDTH: usize = 11;

fn table(measured: &UpstreamMeasurement, words: UiText) -> String {
    let UpstreamMeasurement { upstream, model, dialect, requests, features, .. } = measured;
    let (upstream, model) = (display_escape::escape(upstream), display_escape::escape(model));
    let mut out = messages::probe_heading(&upstream, dialect, &model, *requests);
    for row in features {
        let mark = if row.quirk.is_some() { '!' } else { ' ' };
        let verdict = match row.verdict {
            FeatureVerdict::Yes => words.probe_yes(),
            FeatureVerdict::No => words.probe_no(),
            FeatureVerdict::NotTested => words.probe_not_tested(),
            _ => words.probe_unclear(),
        };
        let quirk = row.quirk.map(|quirk| format!(" ({quirk})")).unwrap_or_default();
        out.push_str(&format!(
            "{mark} {:<20} {} {}{quirk}\n",
            row.feature,
            padded(verdict, VERDICT_WIDTH),
            display_escape::escape(&row.detail)
        ));
    }
    out
}

/// The settings as lines of the configuration file.
fn settings_text(name: &str, settings: &[MeasuredSetting]) -> String {
    let mut out = format!("[upstreams.{}]\n", display_escape::escape(name));
    for setting in settings {
        out.push_str(&format!("{} = {}\n", setting.key, setting.value));
    }
    out
}
