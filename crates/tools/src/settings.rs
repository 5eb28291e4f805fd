//! Settings common to several sources.

use crate::process::{ProgramError, RUN_AS_REMEDY};
use crate::tool::TOOL_TIMEOUT_DEFAULT;
use crate::toolbox::SourceFault;
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use std::time::Duration;
use throughline_engine::Effect;
use throughline_wire::ToolName;

/// Effects by the names that settings use.
const EFFECTS: [(&str, Effect); 6] = [
    ("pure", Effect::Pure),
    ("read", Effect::Read),
    ("cosmetic", Effect::Cosmetic),
    ("idempotent", Effect::Idempotent),
    ("write", Effect::Write),
    ("external", Effect::External),
];

/// Reads an effect strictly: in a log an unknown one counts as external, in settings it is a mistake.
pub(crate) fn effect<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Effect, D::Error> {
    let text = String::deserialize(deserializer)?;
    let known = EFFECTS.iter().find(|(name, _)| *name == text);
    known.map(|(_, effect)| *effect).ok_or_else(|| {
        let names: Vec<&str> = EFFECTS.iter().map(|(name, _)| *name).collect();
        D::Error::custom(format!("there is no effect `{text}`; there are {}", names.join(", ")))
    })
}

/// Reads effects by name of a tool.
pub(crate) fn effects<'de, D, K>(deserializer: D) -> Result<std::collections::BTreeMap<K, Effect>, D::Error>
where
    D: Deserializer<'de>,
    K: Deserialize<'de> + Ord,
{
    #[derive(Deserialize)]
    struct StrictEffect(#[serde(deserialize_with = "effect")] Effect);
    let map = std::collections::BTreeMap::<K, StrictEffect>::deserialize(deserializer)?;
    Ok(map.into_iter().map(|(name, StrictEffect(effect))| (name, effect)).collect())
}

/// Name of a tool from `[commands.NAME]` or `[http_tools.NAME]`: a name with a group is used as it is,
/// another gets the section's group.
pub(crate) fn tool_name(key: &str, given: Option<&str>, group: &str) -> ToolName {
    let name = given.unwrap_or(key);
    if name.contains('.') { ToolName::from(name) } else { ToolName::from(format!("{group}.{name}").as_str()) }
}

/// An error in the settings of one tool or program, before it has the name of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolSettingError {
    /// The problem, in a sentence for people.
    pub message: String,
    /// The remedy.
    pub remedy: Option<String>,
}

impl ToolSettingError {
    pub(crate) fn new(message: impl Into<String>, remedy: &str) -> Self {
        let remedy = (!remedy.is_empty()).then(|| remedy.to_owned());
        Self { message: message.into(), remedy }
    }

    pub(crate) fn into_fault(self, source: &str, tool: Option<ToolName>) -> SourceFault {
        SourceFault { source: source.to_owned(), tool, message: self.message, remedy: self.remedy }
    }
}

impl From<ProgramError> for ToolSettingError {
    fn from(error: ProgramError) -> Self {
        let remedy = match &error {
            ProgramError::NoName => "The first item of argv is the program.",
            ProgramError::CommandLine { .. } => {
                "One item for the program and one for each argument: [\"df\", \"-h\"]; with a shell: [\"sh\", \"-c\", \"df -h | head\"]."
            }
            ProgramError::NotInPath { .. } => "Install it, or give its full path.",
            ProgramError::NotFound { .. } => {
                "Correct the path; relative ones begin at the folder of the configuration."
            }
            ProgramError::RunAsUnavailable { .. } => RUN_AS_REMEDY,
            ProgramError::NotExecutable { .. } => "chmod +x, or put its interpreter in front of it.",
        };
        Self::new(error.to_string(), remedy)
    }
}

/// `timeout_ms` of a tool; 30 s if it is not set.
pub(crate) fn time_limit(timeout_ms: Option<u64>) -> Result<Duration, ToolSettingError> {
    match timeout_ms {
        None => Ok(TOOL_TIMEOUT_DEFAULT),
        Some(0) => Err(ToolSettingError::new(
            "timeout_ms is 0, so every call would time out",
            "Leave it out for 30 seconds.",
        )),
        Some(limit) => Ok(Duration::from_millis(limit)),
    }
}

/// Names of variables whose values count as secrets, even if they are only passed on to a program.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["KEY", "TOKEN", "SECRET", "PASSW", "AUTH", "CREDENTIAL", "COOKIE"].iter().any(|part| name.contains(part))
}
