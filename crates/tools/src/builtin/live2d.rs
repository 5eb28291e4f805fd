//! `live2d.expression` and `live2d.motion`: the avatar acts while the reply still streams.
//!
//! They run in the viewer that shows the avatar. This module only has their names and arguments; running one
//! here answers that no viewer is connected.

use crate::context::ToolContext;
use crate::function::argument_schema;
use crate::tool::{AgentCallable, RunsOn, Tool, ToolError, ToolSpec};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use throughline_engine::Effect;
use throughline_wire::{CallArguments, NotStarted, ToolOutput};

/// Time that a viewer has to answer: a later gesture no longer fits the reply.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// A tool that a connected client runs.
pub struct ClientSideTool {
    spec: ToolSpec,
}

impl ClientSideTool {
    /// From its definition; where it runs is set here.
    pub fn new(spec: ToolSpec) -> Self {
        Self { spec: ToolSpec { runs_on: RunsOn::Client, ..spec } }
    }
}

#[async_trait]
impl Tool for ClientSideTool {
    fn definition(&self) -> ToolSpec {
        self.spec.clone()
    }

    async fn call(&self, _arguments: &CallArguments, _context: ToolContext) -> Result<ToolOutput, ToolError> {
        Err(ToolError::NotStarted(NotStarted::NoViewer))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code)]
struct ExpressionArguments {
    /// Name of the expression, for example smile, sad, surprised, angry, shy.
    #[schemars(length(min = 1, max = 100))]
    name: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code)]
struct MotionArguments {
    /// Group of motions, for example Idle, TapBody, Wave.
    #[schemars(length(min = 1, max = 100))]
    group: String,
    #[schemars(description = "Number of the motion in the group, from 0. Default: any.")]
    #[schemars(range(max = 1000))]
    index: Option<u32>,
}

/// Both tools.
pub fn tools() -> [Arc<dyn Tool>; 2] {
    [
        avatar_tool(
            "live2d.expression",
            "Avatar: expression",
            "Sets the facial expression of your avatar. Use it to show how you feel while you speak.",
            argument_schema::<ExpressionArguments>(),
        ),
        avatar_tool(
            "live2d.motion",
            "Avatar: motion",
            "Plays a motion of your avatar, such as waving or nodding.",
            argument_schema::<MotionArguments>(),
        ),
    ]
}

fn avatar_tool(name: &str, title: &str, description: &str, parameters: Value) -> Arc<dyn Tool> {
    let mut spec = ToolSpec::new(name, description);
    spec.title = title.into();
    spec.parameters = parameters;
    spec.effect = Effect::Cosmetic;
    spec.agent_callable = AgentCallable::Yes;
    spec.timeout = ANSWER_TIMEOUT;
    spec.source = "builtin".into();
    Arc::new(ClientSideTool::new(spec))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ToolExecutor, ToolInvocation, ToolRegistry, ToolToggles};
    use serde_json::json;
    use throughline_engine::CallRunner;
    use throughline_wire::CallOutcome;

    async fn ends(tool: &str, arguments: Value) -> CallOutcome {
        let registry = ToolRegistry::builder().tools(tools()).build().unwrap();
        let call = ToolInvocation::new("call_1", tool, CallArguments::from_value(arguments));
        ToolExecutor::default().run(&registry, call, |_| async {}).await
    }

    #[tokio::test]
    async fn call_without_a_viewer_is_not_started() {
        let no_viewer = || CallOutcome::NotStarted(NotStarted::NoViewer);
        assert_eq!(ends("live2d.expression", json!({"name": "smile"})).await, no_viewer());
        assert_eq!(ends("live2d.motion", json!({"group": "Idle"})).await, no_viewer());
        assert_eq!(ends("live2d.motion", json!({"group": "Idle", "index": 2})).await, no_viewer());
    }

    #[tokio::test]
    async fn invalid_arguments_are_refused_without_a_viewer() {
        for (tool, arguments, message) in [
            ("live2d.expression", json!({}), "/name: missing, expected string"),
            ("live2d.expression", json!({"name": ""}), "/name: expected at least 1 character, got \"\""),
            ("live2d.motion", json!({"group": "Idle", "index": -1}), "/index: expected at least 0, got -1"),
            (
                "live2d.motion",
                json!({"group": "Idle", "speed": 2}),
                "/speed: unknown property; known: group, index",
            ),
        ] {
            let message = message.to_owned();
            assert_eq!(
                ends(tool, arguments).await,
                CallOutcome::NotStarted(NotStarted::InvalidArguments { message })
            );
        }
    }

    #[test]
    fn live2d_tools_may_start_early_and_run_on_a_client() {
        let registry = ToolRegistry::builder().tools(tools()).build().unwrap();
        for offered in registry.offered(&ToolToggles::default()) {
            assert!(offered.effect.may_start_early(), "{}", offered.name);
            assert_eq!(offered.runs, CallRunner::Client { client_id: None });
        }
    }
}
