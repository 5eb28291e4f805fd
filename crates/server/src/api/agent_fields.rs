//! The fields of an agent for a form: label, description, allowed values, and the default. All languages of
//! the page are in one table, so that no text is missing in one of them.
//!
//! A field of the configuration that has no row here fails a test: `agent_fields_describe_every_setting_and_choice`.

use self::FieldKind::{Choice, Json, Lines, Long, Model, Number, Switch};
use crate::error::ApiError;
use crate::extract::Query;
use crate::principal::{KeyScope, Principal};
use crate::state::AppState;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use throughline::UserLanguage;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// `/v1/agent-fields`.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list_fields))
}

/// Language of the texts.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct FieldsQuery {
    /// A tag such as `en` or `zh-CN`; English if it is absent or unsupported.
    language: Option<String>,
}

/// The fields of an agent.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct AgentFields {
    /// Groups in the order of a form. `permissions`, `policy`, `text_rules` and `tool_call.tool_toggles` are not single values and have no field.
    pub parts: Vec<FieldGroupInfo>,
}

/// A group of fields.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct FieldGroupInfo {
    /// Stable code.
    #[schema(example = "limits")]
    pub name: &'static str,
    /// Label for people.
    pub label: &'static str,
    /// Text that applies to all fields of the group.
    #[serde(skip_serializing_if = "str::is_empty")]
    #[schema(required = false)]
    pub help: &'static str,
    /// Fields of the group.
    pub fields: Vec<AgentField>,
}

/// A field of `AgentSettings`.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct AgentField {
    /// Path in the settings.
    #[schema(example = "tool_call.timeout_ms")]
    pub path: &'static str,
    /// `model`, `lines` (a list of texts), `text`, `switch`, `number`, `choice` or `json` (an object).
    pub kind: &'static str,
    /// Values of a choice.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(required = false)]
    pub choices: &'static [&'static str],
    /// Unit of a number: `ms`, `bytes` or `tokens`; absent for counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<&'static str>,
    /// Default that applies if the field is left empty; absent if there is none, or if the model decides.
    #[serde(skip_serializing_if = "Value::is_null")]
    #[schema(value_type = Value, required = false)]
    pub default: Value,
    /// Label for people.
    pub label: &'static str,
    /// Purpose of the field, and the meaning of an empty value, off or 0.
    pub help: &'static str,
}

/// List the fields of an agent for a form: the purpose and the default of each.
#[utoipa::path(get, path = "/v1/agent-fields", tag = "agents", params(FieldsQuery), responses(
    (status = 200, description = "The complete list", body = AgentFields),
))]
async fn list_fields(
    State(state): State<AppState>,
    principal: Principal,
    Query(query): Query<FieldsQuery>,
) -> Result<axum::Json<AgentFields>, ApiError> {
    principal.require(KeyScope::Chat)?;
    let language = query.language.as_deref().map(UserLanguage::from_tag).unwrap_or_default();
    Ok(axum::Json(AgentFields { parts: field_groups(language, &state.app.agent_defaults()) }))
}

fn field_groups(language: UserLanguage, defaults: &Value) -> Vec<FieldGroupInfo> {
    let field = |row: &FieldRow| AgentField {
        path: row.path,
        kind: row.kind.name(),
        choices: match row.kind {
            Choice(choices) => choices,
            _ => &[],
        },
        unit: row.unit(),
        default: defaults.pointer(&format!("/{}", row.path.replace('.', "/"))).cloned().unwrap_or_default(),
        label: row.label.in_language(language),
        help: row.help.in_language(language),
    };
    let part = |part: &FieldGroup| FieldGroupInfo {
        name: part.name,
        label: part.label.in_language(language),
        help: part.help.in_language(language),
        fields: part.rows.iter().map(field).collect(),
    };
    FIELD_GROUPS.iter().map(part).collect()
}

/// A sentence in every language of the page.
struct LocalizedText(&'static str, &'static str);

impl LocalizedText {
    fn in_language(&self, language: UserLanguage) -> &'static str {
        language.pick(self.0, self.1)
    }
}

enum FieldKind {
    Model,
    Lines,
    Long,
    Switch,
    Number,
    Choice(&'static [&'static str]),
    Json,
}

impl FieldKind {
    fn name(&self) -> &'static str {
        match self {
            Model => "model",
            Lines => "lines",
            Long => "text",
            Switch => "switch",
            Number => "number",
            Choice(_) => "choice",
            Json => "json",
        }
    }
}

struct FieldRow {
    path: &'static str,
    kind: FieldKind,
    label: LocalizedText,
    help: LocalizedText,
}

impl FieldRow {
    /// Unit of the value, from the suffix of the field's name.
    fn unit(&self) -> Option<&'static str> {
        let name = self.path.rsplit('.').next().unwrap_or_default();
        match self.kind {
            Number if name.contains("_ms") => Some("ms"),
            Number if name.contains("bytes") => Some("bytes"),
            Number if name.contains("tokens") => Some("tokens"),
            _ => None,
        }
    }
}

struct FieldGroup {
    name: &'static str,
    label: LocalizedText,
    help: LocalizedText,
    rows: &'static [FieldRow],
}

const fn field_row(
    path: &'static str,
    kind: FieldKind,
    label: LocalizedText,
    help: LocalizedText,
) -> FieldRow {
    FieldRow { path, kind, label, help }
}

const NO_HELP: LocalizedText = LocalizedText("", "");

const FIELD_GROUPS: &[FieldGroup] = &[
    FieldGroup {
        name: "model",
        label: LocalizedText("Model", "模型"),
        help: NO_HELP,
        rows: &[
            field_row(
                "model",
                Model,
                LocalizedText("Model", "模型"),
                LocalizedText(
                    "upstream/model, with an upstream from the configuration.",
                    "上游/模型，上游须在配置里。",
                ),
            ),
            field_row(
                "fallback",
                Lines,
                LocalizedText("Fallback models", "备用模型"),
                LocalizedText(
                    "Tried in this order if a model fails before its first token. One per line. Empty: none.",
                    "模型在首个 token 之前失败时依次尝试。每行一个。留空：无。",
                ),
            ),
            field_row(
                "mode",
                Choice(&["auto", "native", "text"]),
                LocalizedText("Tool-call mode", "工具调用方式"),
                LocalizedText(
                    "native: the model's own tool calls. text: calls written in its text, for models without tool calling. auto: native, with an error if the model does not support it.",
                    "native：模型自带的工具调用。text：写在文本里，适合没有工具能力的模型。auto：使用 native，模型不支持时报错。",
                ),
            ),
            field_row(
                "temperature",
                Number,
                LocalizedText("Temperature", "温度"),
                LocalizedText(
                    "0 to 2; 0 varies least. Empty: the model's default.",
                    "0 到 2，0 变化最小。留空：模型的默认值。",
                ),
            ),
            field_row(
                "max_output_tokens",
                Number,
                LocalizedText("Maximum output", "输出上限"),
                LocalizedText(
                    "Per step, including thinking. Empty: the model's limit.",
                    "每一步的上限，包括思考。留空：模型的上限。",
                ),
            ),
            field_row(
                "hosted",
                Lines,
                LocalizedText("Provider tools", "服务商自带的工具"),
                LocalizedText(
                    "web_search, code_execution: run by the provider. For OpenAI Responses, Anthropic and Gemini. Empty: none.",
                    "web_search、code_execution：由服务商自己运行。适用于 OpenAI Responses、Anthropic 和 Gemini。留空：无。",
                ),
            ),
            field_row(
                "extra",
                Json,
                LocalizedText("Extra fields", "附加字段"),
                LocalizedText(
                    "Added to the request body unchanged: {\"top_p\": 0.9}. Empty: none.",
                    "原样加入请求的其他字段：{\"top_p\": 0.9}。留空：无。",
                ),
            ),
        ],
    },
    FieldGroup {
        name: "prompt",
        label: LocalizedText("Prompt", "提示词"),
        help: NO_HELP,
        rows: &[field_row(
            "prompt",
            Long,
            LocalizedText("System prompt", "系统提示词"),
            LocalizedText(
                "A template with {{ tools }}, {{ date }}, {{ time }}, {{ user }}, {{ agent }}, {{ model }}. Empty: no prompt, except for tools in text mode.",
                "这是模板，可以使用 {{ tools }}、{{ date }}、{{ time }}、{{ user }}、{{ agent }}、{{ model }}。留空：没有提示词，文本模式的工具说明除外。",
            ),
        )],
    },
    FieldGroup {
        name: "tools",
        label: LocalizedText("Tools", "工具"),
        help: NO_HELP,
        rows: &[
            field_row(
                "tool_call.enabled",
                Switch,
                LocalizedText("Use tools", "使用工具"),
                LocalizedText(
                    "Off: no tools, regardless of the switches below.",
                    "关：没有任何工具，不论下面的开关如何。",
                ),
            ),
            field_row(
                "tool_call.default_tool_enabled",
                Switch,
                LocalizedText("Enable other tools by default", "其他工具默认开启"),
                LocalizedText(
                    "Includes tools added later. Off: only the tools enabled below.",
                    "包括以后新增的工具。关：只提供下面打开的工具。",
                ),
            ),
        ],
    },
    FieldGroup {
        name: "calls",
        label: LocalizedText("Tool use", "工具的使用方式"),
        help: NO_HELP,
        rows: &[
            field_row(
                "tool_call.mode",
                Choice(&["auto", "manual"]),
                LocalizedText("Approval mode", "批准方式"),
                LocalizedText(
                    "auto: the approval rules decide. manual: every call waits for approval, without a time limit.",
                    "auto：由批准规则决定。manual：每个调用都等待批准，不限时间。",
                ),
            ),
            field_row(
                "tool_call.require_confirmation",
                Switch,
                LocalizedText("Ask before every call", "每次调用前都询问"),
                LocalizedText(
                    "Even if a rule allows the call. Off: the rules decide.",
                    "即使规则允许。关：由规则决定。",
                ),
            ),
            field_row(
                "tool_call.max_iterations",
                Number,
                LocalizedText("Tool rounds", "工具轮数"),
                LocalizedText(
                    "Maximum steps with tool calls per turn, followed by a last step without tools. 0 is the same as 1.",
                    "每轮对话中带工具调用的步数上限，之后是不带工具的最后一步。0 等同于 1。",
                ),
            ),
            field_row(
                "tool_call.timeout_ms",
                Number,
                LocalizedText("Tool time limit", "工具的时限"),
                LocalizedText(
                    "For tools without their own time limit. 0: they time out at once.",
                    "适用于没有自己时限的工具。0：立即超时。",
                ),
            ),
            field_row(
                "tool_call.parallel_execution",
                Switch,
                LocalizedText("Parallel execution", "并行运行"),
                LocalizedText(
                    "Run the calls of a step at the same time. Off: one after another.",
                    "同一步的调用同时运行。关：逐个运行。",
                ),
            ),
            field_row(
                "tool_call.start",
                Choice(&["eager", "after_stream"]),
                LocalizedText("Call start", "启动时机"),
                LocalizedText(
                    "eager: read-only tools start while the model is still writing. after_stream: calls start after the model has finished.",
                    "eager：只读工具在模型输出时就启动。after_stream：模型输出结束后才启动。",
                ),
            ),
            field_row(
                "tool_call.protocol",
                Choice(&["vcp", "xml"]),
                LocalizedText("Text protocol", "文本协议"),
                LocalizedText(
                    "Format of calls in text mode; Hermes and Qwen models are trained on xml.",
                    "文本模式下调用的格式；Hermes 和 Qwen 模型按 xml 训练。",
                ),
            ),
            field_row(
                "tool_call.results",
                Choice(&["user", "tool"]),
                LocalizedText("Tool-result role", "工具结果的角色"),
                LocalizedText(
                    "In text mode. user: framed in a user message, accepted by every server. tool: the tool role, for models trained on it.",
                    "用于文本模式。user：放在用户消息的框架里，所有服务都接受。tool：tool 角色，适合按此训练的模型。",
                ),
            ),
        ],
    },
    FieldGroup {
        name: "turns",
        label: LocalizedText("During a turn", "对话进行中"),
        help: NO_HELP,
        rows: &[
            field_row(
                "steering",
                Choice(&["next_step", "after_turn"]),
                LocalizedText("Messages during a turn", "回合进行中的消息"),
                LocalizedText(
                    "next_step: delivered to the model before its next step. after_turn: starts the next turn.",
                    "next_step：在模型的下一步之前送达。after_turn：开始下一轮。",
                ),
            ),
            field_row(
                "on_interrupted",
                Choice(&["continue", "end"]),
                LocalizedText("After a crash", "崩溃之后"),
                LocalizedText(
                    "continue: resume the turn from its log. end: end it as interrupted.",
                    "continue：从日志恢复这一轮。end：以中断结束。",
                ),
            ),
        ],
    },
    FieldGroup {
        name: "guard",
        label: LocalizedText("Loop guard", "循环保护"),
        help: LocalizedText(
            "Detects calls that repeat with the same arguments and the same result.",
            "检测参数和结果都相同的重复调用。",
        ),
        rows: &[
            field_row(
                "guard.period_max",
                Number,
                LocalizedText("Loop detection length", "循环检测长度"),
                LocalizedText(
                    "Maximum length of a repeated sequence, in calls. 0: off.",
                    "重复序列的最大长度，以调用数计。0：关闭。",
                ),
            ),
            field_row(
                "guard.note_after",
                Number,
                LocalizedText("Note after", "提醒"),
                LocalizedText(
                    "Repetitions after which the model is notified. 0: never.",
                    "重复多少次后提醒模型。0：从不。",
                ),
            ),
            field_row(
                "guard.ask_after",
                Number,
                LocalizedText("Ask after", "询问"),
                LocalizedText(
                    "Repetitions after which the next call needs approval. 0: never.",
                    "重复多少次后，下一次调用需要批准。0：从不。",
                ),
            ),
            field_row(
                "guard.stop_after",
                Number,
                LocalizedText("Stop after", "停止"),
                LocalizedText(
                    "Repetitions after which the next call is denied and the last step follows. 0: never.",
                    "重复多少次后拒绝下一次调用，并进入最后一步。0：从不。",
                ),
            ),
        ],
    },
    FieldGroup {
        name: "limits",
        label: LocalizedText("Limits", "上限"),
        help: LocalizedText(
            "Empty: the default for all agents. 0: none; for a time limit: at once.",
            "留空：全部智能体的默认值。0：没有；时限则为立即。",
        ),
        rows: &[
            field_row(
                "limits.calls_per_turn_max",
                Number,
                LocalizedText("Calls per turn", "每轮调用数"),
                LocalizedText("Further calls do not start.", "超过的调用不会启动。"),
            ),
            field_row(
                "limits.approval_ms_max",
                Number,
                LocalizedText("Approval timeout", "等待批准的时限"),
                LocalizedText("The call is denied when it expires.", "超时即拒绝调用。"),
            ),
            field_row(
                "limits.output_bytes_max",
                Number,
                LocalizedText("Output per call", "单个调用的输出"),
                LocalizedText(
                    "Recorded and sent to the model; longer output is reduced to its head and tail.",
                    "记录并发送给模型的长度；超过时只保留头尾。",
                ),
            ),
            field_row(
                "limits.shortened_output_bytes_max",
                Number,
                LocalizedText("Output in a shortened history", "缩短历史中的输出"),
                LocalizedText(
                    "Per old call, after the upstream has rejected the length; head and tail.",
                    "上游因过长而拒绝之后，每个旧调用保留的长度；保留头尾。",
                ),
            ),
            field_row(
                "limits.messages_queued_max",
                Number,
                LocalizedText("Queued messages", "排队的消息"),
                LocalizedText(
                    "Sent while a turn is running; further messages are rejected.",
                    "回合进行中发送的消息；超过的会被拒绝。",
                ),
            ),
            field_row(
                "limits.questions_per_call_max",
                Number,
                LocalizedText("Questions per call", "工具的提问"),
                LocalizedText(
                    "Asked by a tool; further questions are cancelled.",
                    "由工具提出；超过的会被取消。",
                ),
            ),
            field_row(
                "limits.asked_ms_max",
                Number,
                LocalizedText("Time to answer a question", "回答提问的时限"),
                LocalizedText("The tool's time limit is paused meanwhile.", "期间工具的时限暂停。"),
            ),
            field_row(
                "limits.tool_overrun_ms",
                Number,
                LocalizedText("Tool timeout grace", "工具超时的宽限"),
                LocalizedText(
                    "Additional time for a tool to report that it timed out.",
                    "超过时限后，供工具报告超时的时间。",
                ),
            ),
            field_row(
                "limits.cancel_grace_ms",
                Number,
                LocalizedText("Cancel grace period", "停止时的宽限"),
                LocalizedText(
                    "Time for a cancelled tool to report its result.",
                    "供被取消的工具报告结果的时间。",
                ),
            ),
            field_row(
                "limits.own_tool_ms_max",
                Number,
                LocalizedText("Client-provided tools", "客户端提供的工具"),
                LocalizedText("Time limit for their results.", "等待结果的时限。"),
            ),
            field_row(
                "limits.progress_events_max",
                Number,
                LocalizedText("Progress events per call", "单个调用的进度"),
                LocalizedText("Maximum events recorded.", "记录的事件数上限。"),
            ),
            field_row(
                "limits.problems_per_step_max",
                Number,
                LocalizedText("Stream problems per step", "每步的流问题"),
                LocalizedText("Maximum problems recorded.", "记录的问题数上限。"),
            ),
            field_row(
                "limits.pauses_max",
                Number,
                LocalizedText("Consecutive pauses", "连续暂停"),
                LocalizedText("How often a provider may pause and continue.", "服务商可以暂停后继续的次数。"),
            ),
            field_row(
                "limits.takeovers_max",
                Number,
                LocalizedText("Maximum resumes after a crash", "崩溃后的最大恢复次数"),
                LocalizedText("After that, the turn ends as interrupted.", "超过后，这一轮以中断结束。"),
            ),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn field_labels_have_both_languages_and_unique_paths() {
        for part in FIELD_GROUPS {
            assert!(!part.label.0.is_empty() && !part.label.1.is_empty(), "{}", part.name);
            assert_eq!(part.help.0.is_empty(), part.help.1.is_empty(), "{}", part.name);
            for row in part.rows {
                for LocalizedText(english, chinese) in [&row.label, &row.help] {
                    assert!(!english.is_empty() && !chinese.is_ascii(), "{}", row.path);
                }
            }
        }
        let paths: Vec<_> = FIELD_GROUPS.iter().flat_map(|part| part.rows).map(|row| row.path).collect();
        assert_eq!(paths.iter().collect::<BTreeSet<_>>().len(), paths.len(), "a field twice");
    }
}
