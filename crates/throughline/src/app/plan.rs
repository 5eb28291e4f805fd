//! Combined result of configuration and builder: upstreams, agents and limits.

use crate::agent::prompt::{PromptTemplate, PromptUser};
use crate::agent::{Agent, AgentTools, ResultRole, TextProtocolKind, ToolMode};
use crate::config::AppSettings;
use crate::error::Error;
use crate::upstream::models::ModelFacts;
use crate::upstream::{Upstream, UpstreamClient};
use crate::voice::AudioSources;
use std::collections::BTreeMap;
use std::sync::Arc;
use throughline_engine::{ExecutionMode, PolicyRule, RetryPolicy, StartRule, TurnLimits, UpstreamChoice};
use throughline_tools::process::SpawnContext;
use throughline_wire::{DecodeLimits, ModelSettings};

/// Everything that a configuration and the builder determine. A turn keeps the plan that it began with;
/// reloading the configuration makes a new one.
#[derive(Clone)]
pub(crate) struct AppPlan {
    pub(crate) upstreams: BTreeMap<String, Arc<UpstreamClient>>,
    pub(crate) agents: BTreeMap<String, Agent>,
    /// Model facts from the configuration.
    pub(crate) models: Arc<BTreeMap<String, ModelFacts>>,
    /// The agent that answers when none is named.
    pub(crate) agent: String,
    pub(crate) limits: TurnLimits,
    pub(crate) retry: RetryPolicy,
    pub(crate) user: PromptUser,
    pub(crate) audio: AudioSources,
    decode_limits: DecodeLimits,
}

/// Builder settings that override any configuration.
#[derive(Default)]
pub(crate) struct BuilderOverrides {
    pub(crate) upstreams: Vec<Upstream>,
    pub(crate) model: Option<String>,
    pub(crate) fallbacks: Vec<String>,
    pub(crate) prompt: Option<String>,
    pub(crate) mode: Option<ToolMode>,
    pub(crate) protocol: Option<TextProtocolKind>,
    pub(crate) results: Option<ResultRole>,
    pub(crate) execution: ExecutionMode,
    pub(crate) start: StartRule,
    pub(crate) limits: Option<TurnLimits>,
    pub(crate) decode_limits: Option<DecodeLimits>,
    pub(crate) retry: Option<RetryPolicy>,
    /// Rules that precede those of the agent.
    pub(crate) policy: Vec<PolicyRule>,
    pub(crate) sampling: ModelSettings,
}

impl AppPlan {
    pub(crate) fn new(
        settings: AppSettings,
        overrides: &BuilderOverrides,
        surroundings: &SpawnContext,
    ) -> Result<Self, Error> {
        let AppSettings {
            upstreams: mut upstream_settings,
            models,
            mut agents,
            agent,
            limits: section,
            user,
            sources,
            voices,
            ears,
            ..
        } = settings;
        let decode_limits = overrides.decode_limits.unwrap_or(section.decode);
        upstream_settings.extend(
            overrides.upstreams.iter().map(|upstream| (upstream.name().to_owned(), upstream.clone())),
        );
        let mut upstreams = BTreeMap::new();
        let models = Arc::new(models);
        for (name, upstream) in upstream_settings {
            let client = UpstreamClient::new(upstream, decode_limits)?.with_models(Arc::clone(&models));
            upstreams.insert(name, Arc::new(client));
        }

        if let Some(model) = &overrides.model {
            let mut models = vec![choose_model(model, &upstreams)?];
            for fallback in &overrides.fallbacks {
                models.push(choose_model(fallback, &upstreams)?);
            }
            let default = || Agent {
                tool_call: AgentTools {
                    execution: overrides.execution,
                    start: overrides.start,
                    ..AgentTools::default()
                },
                ..Agent::new(agent.clone(), Vec::new())
            };
            agents.entry(agent.clone()).or_insert_with(default).models = models;
        }
        let default_agent = agents.get_mut(&agent).ok_or(Error::NoModel)?;
        if let Some(prompt) = &overrides.prompt {
            default_agent.prompt = Some(PromptTemplate::compile(prompt)?);
        }
        default_agent.mode = overrides.mode.unwrap_or(default_agent.mode);
        default_agent.tool_call.protocol = overrides.protocol.unwrap_or(default_agent.tool_call.protocol);
        default_agent.tool_call.results = overrides.results.unwrap_or(default_agent.tool_call.results);
        let rules = std::mem::take(&mut default_agent.policy);
        default_agent.policy = overrides.policy.iter().cloned().chain(rules).collect();
        default_agent.settings = overrides.sampling.clone().with_defaults(&default_agent.settings);
        if let Some(first) = default_agent.models.first() {
            let client = upstreams.get(&first.name).ok_or_else(|| Error::NoUpstream {
                model: first.model.clone(),
                upstream: first.name.clone(),
            })?;
            if let Some(variable) = client.upstream().missing_key() {
                let (upstream, variable) = (first.name.clone(), variable.to_owned());
                return Err(Error::MissingKey { upstream, variable });
            }
        }
        let audio = AudioSources::new(voices, ears, surroundings, sources.run_as.as_deref())?;
        Ok(Self {
            upstreams,
            agents,
            models,
            agent,
            limits: overrides.limits.unwrap_or(section.turn),
            retry: overrides.retry.unwrap_or(section.retry),
            user,
            audio,
            decode_limits,
        })
    }

    /// A copy with this upstream, replacing the one of the same name.
    pub(crate) fn with_upstream(&self, upstream: Upstream) -> Result<Self, Error> {
        let mut plan = self.clone();
        let name = upstream.name().to_owned();
        let client = UpstreamClient::new(upstream, self.decode_limits)?;
        plan.upstreams.insert(name, Arc::new(client.with_models(Arc::clone(&self.models))));
        Ok(plan)
    }

    /// The plan without this upstream.
    pub(crate) fn without_upstream(&self, name: &str) -> Self {
        let mut plan = self.clone();
        plan.upstreams.remove(name);
        plan
    }

    pub(crate) fn agent(&self, name: Option<&str>) -> Result<&Agent, Error> {
        let name = name.unwrap_or(&self.agent);
        self.agents.get(name).ok_or_else(|| Error::UnknownAgent {
            agent: name.to_owned(),
            agents: quoted_list(self.agents.keys()),
        })
    }

    /// Models to call: the one that the turn requests, or those of the agent.
    pub(crate) fn models(
        &self,
        agent: &Agent,
        requested: Option<&str>,
    ) -> Result<Vec<UpstreamChoice>, Error> {
        match requested {
            Some(model) => Ok(vec![choose_model(model, &self.upstreams)?]),
            None => Ok(agent.models.clone()),
        }
    }

    /// See [`choose_model`].
    pub(crate) fn model_choice(&self, model: &str) -> Result<UpstreamChoice, Error> {
        choose_model(model, &self.upstreams)
    }

    pub(crate) fn clients(&self, models: &[UpstreamChoice]) -> Result<Vec<Arc<UpstreamClient>>, Error> {
        let client = |choice: &UpstreamChoice| {
            self.upstreams.get(&choice.name).cloned().ok_or_else(|| Error::NoUpstream {
                model: choice.model.clone(),
                upstream: choice.name.clone(),
            })
        };
        models.iter().map(client).collect()
    }
}

/// Resolves `upstream/model`, or a model's name alone if there is one upstream. Names of models contain
/// slashes too (`deepseek-ai/DeepSeek-V3`), so the part before the first one counts only if it is the name of
/// an upstream.
fn choose_model<T>(text: &str, upstreams: &BTreeMap<String, T>) -> Result<UpstreamChoice, Error> {
    if let Some((upstream, model)) = text.split_once('/')
        && upstreams.contains_key(upstream)
        && !model.is_empty()
    {
        return Ok(UpstreamChoice { name: upstream.to_owned(), model: model.to_owned() });
    }
    let mut names = upstreams.keys();
    match (names.next(), names.next()) {
        (Some(only), None) => Ok(UpstreamChoice { name: only.clone(), model: text.to_owned() }),
        (None, _) => {
            let upstream = text.split_once('/').map_or("", |(upstream, _)| upstream);
            Err(Error::NoUpstream { model: text.to_owned(), upstream: upstream.to_owned() })
        }
        _ => {
            Err(Error::AmbiguousUpstream { model: text.to_owned(), upstreams: quoted_list(upstreams.keys()) })
        }
    }
}

fn quoted_list<'a>(names: impl Iterator<Item = &'a String>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
