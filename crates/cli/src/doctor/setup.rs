//! Configuration: the file, the upstreams and their keys, the tool sources.

use super::report::{DoctorArea, DoctorReport, DoctorState};
use crate::args::ModelArgs;
use crate::chinese::source_text;
use crate::messages::UiText;
use crate::setup::{self, FileAccess};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use throughline::KeyOrigin;
use throughline::config::{AppSettings, DEMO};
use throughline_engine::RulePart;
use throughline_tools::{AgentCallable, Toolbox};

/// Time limit for tool sources to answer.
const SOURCES_WAIT: Duration = Duration::from_secs(15);

/// Checks the configuration file and its resolved settings. `None` = it cannot be used.
pub(crate) fn check_configuration(
    choice: &ModelArgs,
    words: UiText,
    report: &mut DoctorReport,
) -> Option<AppSettings> {
    let file = setup::config_file(choice.config.as_deref());
    let name = file.as_ref().map_or_else(|| "throughline.toml".to_owned(), |path| path.display().to_string());
    let settings = match setup::load_settings(choice) {
        Ok(settings) => settings,
        Err(failure) => {
            report.add(DoctorArea::Configuration, DoctorState::Wrong, name, failure.what);
            if !failure.remedy.is_empty() {
                report.remedy(failure.remedy);
            }
            return None;
        }
    };
    match file {
        Some(_) => {
            let detail = words.doctor_file(settings.agents.len(), settings.upstreams.len());
            report.add(DoctorArea::Configuration, DoctorState::Good, name, detail);
        }
        None => report.add(DoctorArea::Configuration, DoctorState::Note, name, words.doctor_no_file()),
    }
    let model = settings.agents.get(&settings.agent).and_then(|agent| agent.models.first());
    let model = model.map_or_else(String::new, |first| {
        if first.name == first.model { first.name.clone() } else { format!("{}/{}", first.name, first.model) }
    });
    let detail =
        words.doctor_agent(&model, settings.agents.get(&settings.agent).map(|agent| agent.mode.name()));
    report.add(DoctorArea::Configuration, DoctorState::Good, settings.agent.clone(), detail);
    Some(settings)
}

/// Checks that each upstream has a key; never prints the key.
pub(crate) fn check_upstreams(settings: &AppSettings, words: UiText, report: &mut DoctorReport) {
    let choices = settings.agents.values().flat_map(|agent| &agent.models);
    let used: BTreeSet<&str> = choices.map(|choice| choice.name.as_str()).collect();
    for upstream in settings.upstreams.values() {
        let endpoint = upstream.summary();
        match (upstream.missing_key(), upstream.key_variable()) {
            (Some(variable), _) => {
                let state =
                    if used.contains(upstream.name()) { DoctorState::Wrong } else { DoctorState::Note };
                report.add(
                    DoctorArea::Upstreams,
                    state,
                    upstream.name(),
                    words.doctor_no_key(&endpoint, variable),
                );
                report.remedy(format!("throughline connect {}, or export {variable}=…", upstream.name()));
            }
            _ if upstream.key_origin() == Some(KeyOrigin::Stored) => {
                report.add(
                    DoctorArea::Upstreams,
                    DoctorState::Good,
                    upstream.name(),
                    words.doctor_stored_key(&endpoint),
                );
            }
            (None, Some(variable)) => {
                report.add(
                    DoctorArea::Upstreams,
                    DoctorState::Good,
                    upstream.name(),
                    words.doctor_key(&endpoint, variable),
                );
            }
            (None, None) => {
                report.add(
                    DoctorArea::Upstreams,
                    DoctorState::Good,
                    upstream.name(),
                    words.doctor_keyless(&endpoint),
                );
            }
        }
    }
    if settings.wants_demo() {
        report.add(DoctorArea::Upstreams, DoctorState::Good, DEMO, words.doctor_demo());
    }
}

/// Sources of tools with what each has, and what is wrong with them.
pub(crate) async fn check_tools(
    choice: &ModelArgs,
    settings: &AppSettings,
    words: UiText,
    report: &mut DoctorReport,
) {
    let demo = settings.wants_demo() && choice.base_url.is_none();
    let fixed = match setup::build_tools(settings, FileAccess::of(demo), demo || choice.demo_tools) {
        Ok(fixed) => fixed,
        Err(failure) => {
            report.add(
                DoctorArea::Tools,
                DoctorState::Wrong,
                "tools",
                format!("{}: {}", failure.what, failure.why),
            );
            return report.remedy(failure.remedy);
        }
    };
    let toolbox = match Toolbox::new(fixed) {
        Ok(toolbox) => toolbox,
        Err(error) => return report.add(DoctorArea::Tools, DoctorState::Wrong, "tools", error.to_string()),
    };
    let sources = settings.sources.sources(&setup::surroundings(choice), &setup::pins());
    for configured in sources.values() {
        toolbox.add(configured.source.clone());
    }
    let silent = toolbox.wait_ready(SOURCES_WAIT).await;
    let registry = toolbox.registry();
    let mut counts: BTreeMap<&str, usize> =
        sources.values().map(|configured| (configured.source.name(), 0)).collect();
    for tool in registry.iter().filter(|tool| tool.spec().agent_callable == AgentCallable::Yes) {
        *counts.entry(tool.spec().source.as_str()).or_default() += 1;
    }
    let faults = toolbox.faults();
    for (source, count) in counts {
        if silent.iter().any(|name| name == source) {
            report.add(
                DoctorArea::Tools,
                DoctorState::Wrong,
                source,
                words.doctor_silent(SOURCES_WAIT.as_secs()),
            );
            continue;
        }
        let is_healthy = faults.iter().all(|fault| fault.source != source);
        // A source without tools reports its reason below.
        if count > 0 || is_healthy {
            let state = if count == 0 { DoctorState::Note } else { DoctorState::Good };
            report.add(DoctorArea::Tools, state, source, words.doctor_tools(count));
        }
    }
    for fault in faults {
        let name = match &fault.tool {
            Some(tool) => format!("{}: {tool}", fault.source),
            None => fault.source.clone(),
        };
        report.add(DoctorArea::Tools, DoctorState::Wrong, name, source_text(&fault.message));
        if let Some(remedy) = fault.remedy {
            report.remedy(source_text(&remedy));
        }
    }
    for agent in settings.agents.values() {
        for name in registry.unknown_toggles(&agent.tool_call.toggles) {
            let names = registry.iter().map(|tool| tool.spec().name.as_str());
            let meant = throughline_engine::suggest_names(name, names);
            // Without a name near to it, it may be meant for a source that is away.
            let state = if meant.is_empty() { DoctorState::Note } else { DoctorState::Wrong };
            report.add(
                DoctorArea::Tools,
                state,
                &agent.name,
                words.doctor_unknown_toggle(name, meant.first()),
            );
        }
        for rule in toolbox.unmatched_rules(&agent.policy) {
            let is_about_names = !matches!(rule.part, RulePart::RelativeFolder(_));
            // Without a name near to it, it may be meant for tools that a page brings along.
            let may_come = is_about_names && rule.suggestions.is_empty();
            let state = if may_come { DoctorState::Note } else { DoctorState::Wrong };
            report.add(DoctorArea::Tools, state, &agent.name, words.doctor_unmatched_rule(&rule));
        }
    }
    toolbox.stop().await;
}
