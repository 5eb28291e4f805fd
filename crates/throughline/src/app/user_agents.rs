//! Agents made by users, in addition to those of the configuration. The configuration's take precedence, so a user's
//! agent cannot replace one.

use super::Throughline;
use crate::agent::Agent;
use crate::config::{FieldError, agent_from_settings};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Agents by user (`None` = an application with one user), then by name.
type AgentsByUser = BTreeMap<Option<String>, BTreeMap<String, Arc<Agent>>>;

/// Agents that users have defined. A turn keeps the one that it began with.
#[derive(Default)]
pub(crate) struct UserAgents {
    // Changed by single steps, each of which leaves a whole map.
    by_user: RwLock<AgentsByUser>,
}

impl UserAgents {
    pub(crate) fn get(&self, user: &Option<String>, name: &str) -> Option<Arc<Agent>> {
        self.read().get(user)?.get(name).cloned()
    }

    fn read(&self) -> RwLockReadGuard<'_, AgentsByUser> {
        self.by_user.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, AgentsByUser> {
        self.by_user.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Throughline {
    /// Reads an agent from a value with the fields of `[agents.NAME]`. Its models must be at configured upstreams; it
    /// cannot define one. The agent is not stored: see [`set_agent`](Self::set_agent).
    ///
    /// # Errors
    /// The first mistake, with the path of its field.
    pub fn parse_agent(&self, name: &str, settings: &Value) -> Result<Agent, FieldError> {
        let upstreams = self.upstreams();
        let by_name = upstreams.into_iter().map(|upstream| (upstream.name().to_owned(), upstream));
        agent_from_settings(name, settings, &by_name.collect())
    }

    /// The default settings of an agent: every field that has a default, with this application's limits for all
    /// agents.
    pub fn agent_defaults(&self) -> Value {
        Agent::default_settings(self.plan().limits)
    }

    /// Adds or replaces an agent of this user, for turns that start from now on.
    pub fn set_agent(&self, user: Option<String>, agent: Agent) {
        self.inner.user_agents.write().entry(user).or_default().insert(agent.name.clone(), Arc::new(agent));
    }

    /// Takes an agent of a user away. Turns that are running keep it.
    pub fn remove_agent(&self, user: &Option<String>, name: &str) {
        if let Some(agents) = self.inner.user_agents.write().get_mut(user) {
            agents.remove(name);
        }
    }

    /// Forgets the agents and permanent approvals of a user whose data was deleted.
    pub fn forget_user(&self, user: &str) {
        self.inner.user_agents.write().remove(&Some(user.to_owned()));
        self.invalidate_permanent_approvals(Some(user));
    }

    /// Replaces all agents of a user with those of a store.
    pub fn set_agents(&self, user: Option<String>, agents: Vec<Agent>) {
        let agents = agents.into_iter().map(|agent| (agent.name.clone(), Arc::new(agent))).collect();
        self.inner.user_agents.write().insert(user, agents);
    }

    /// True if the agents of this user have been set before, even to none.
    pub fn has_agents_for(&self, user: &Option<String>) -> bool {
        self.inner.user_agents.read().contains_key(user)
    }

    /// The agents that this user can name, by name: those of the configuration, and the user's own where the configuration
    /// has none of the name.
    pub fn agents_for(&self, user: &Option<String>) -> Vec<Agent> {
        let mut all: BTreeMap<String, Agent> = match self.inner.user_agents.read().get(user) {
            Some(own) => own.iter().map(|(name, agent)| (name.clone(), (**agent).clone())).collect(),
            None => BTreeMap::new(),
        };
        all.extend(self.agents().into_iter().map(|agent| (agent.name.clone(), agent)));
        all.into_values().collect()
    }
}
