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
        label: LocalizedText("Who thinks", "由谁思考"),
        help: NO_HELP,
        rows: &[
            field_row(
                "model",
                Model,
                LocalizedText("Model", "模型"),
                LocalizedText(
                    "upstream/model, at an upstream of the configuration.",
                    "上游/模型，上游须在配置里。",
                ),
            ),
            field_row(
                "fallback",
                Lines,
                LocalizedText("Fallback models", "备用模型"),
                LocalizedText(
                    "Tried in this order when the one before cannot be had, before the first token only. One on a line. Empty: none.",
                    "前一个不可用时依次尝试，仅在首个 token 之前。每行一个。留空：无。",
                ),
            ),
            field_row(
                "mode",
                Choice(&["auto", "native", "text"]),
                LocalizedText("How calls travel", "调用的传递方式"),
                LocalizedText(
                    "native: the model's own tool calls. text: blocks in its text, for models without tools. auto: native, and says so if the model cannot.",
                    "native：模型自带的工具调用。text：写在文本里，适合没有工具能力的模型。auto：先用 native，模型不支持时会说明。",
                ),
            ),
            field_row(
                "temperature",
                Number,
                LocalizedText("Temperature", "温度"),
                LocalizedText(
                    "0 to 2; 0 is the steadiest. Empty: the model's own.",
                    "0 到 2，0 最稳定。留空：由模型决定。",
                ),
            ),
            field_row(
                "max_output_tokens",
                Number,
                LocalizedText("Longest output", "最长输出"),
                LocalizedText(
                    "Of one step, thinking included. Empty: the model's own limit.",
                    "每一步的上限，包括思考。留空：由模型决定。",
                ),
            ),
            field_row(
                "hosted",
                Lines,
                LocalizedText("Tools of the provider", "服务商自带的工具"),
                LocalizedText(
                    "web_search, code_execution: the provider runs them itself. For OpenAI Responses, Anthropic and Gemini. Empty: none.",
                    "web_search、code_execution：由服务商自己运行。适用于 OpenAI Responses、Anthropic 和 Gemini。留空：无。",
                ),
            ),
            field_row(
                "extra",
                Json,
                LocalizedText("Extra fields", "附加字段"),
                LocalizedText(
                    "Further fields of the request body, as they are: {\"top_p\": 0.9}. Empty: none.",
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
                "A template; it knows {{ tools }}, {{ date }}, {{ time }}, {{ user }}, {{ agent }}, {{ model }}. Empty: nothing is told but what tools in text mode need.",
                "这是模板，可以使用 {{ tools }}、{{ date }}、{{ time }}、{{ user }}、{{ agent }}、{{ model }}。留空：只告知文本模式的工具所需的内容。",
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
                    "Off: it has none at all, whatever the switches below say.",
                    "关：完全没有工具，不论下面的开关如何。",
                ),
            ),
            field_row(
                "tool_call.default_tool_enabled",
                Switch,
                LocalizedText("Tools without a switch are on", "没有开关的工具默认开启"),
                LocalizedText(
                    "Those that come later are, too. Off: only what is switched on below.",
                    "以后新增的也是。关：只提供下面打开的工具。",
                ),
            ),
        ],
    },
    FieldGroup {
        name: "calls",
        label: LocalizedText("How tools are used", "工具的使用方式"),
        help: NO_HELP,
        rows: &[
            field_row(
                "tool_call.mode",
                Choice(&["auto", "manual"]),
                LocalizedText("Who starts calls", "由谁启动调用"),
                LocalizedText(
                    "auto: they run as the rules say. manual: each waits for a person, for as long as it takes.",
                    "auto：按规则运行。manual：每个调用都等人确认，不限时间。",
                ),
            ),
            field_row(
                "tool_call.require_confirmation",
                Switch,
                LocalizedText("Ask before every call", "每次调用前都询问"),
                LocalizedText(
                    "Even where a rule allows. Off: the rules decide.",
                    "即使规则允许。关：由规则决定。",
                ),
            ),
            field_row(
                "tool_call.max_iterations",
                Number,
                LocalizedText("Rounds of tools", "工具轮数"),
                LocalizedText(
                    "Steps with calls in a turn; then one last step without tools. 0 is the same as 1.",
                    "一轮对话中带调用的步数，之后是不带工具的最后一步。0 等同于 1。",
                ),
            ),
            field_row(
                "tool_call.timeout_ms",
                Number,
                LocalizedText("Time limit of a tool", "工具的时限"),
                LocalizedText(
                    "Of those that have none of their own. 0: they time out at once.",
                    "适用于自身没有时限的工具。0：立即超时。",
                ),
            ),
            field_row(
                "tool_call.parallel_execution",
                Switch,
                LocalizedText("Side by side", "并行运行"),
                LocalizedText(
                    "Calls of one step run at the same time. Off: one after the other.",
                    "同一步的调用同时运行。关：逐个运行。",
                ),
            ),
            field_row(
                "tool_call.start",
                Choice(&["eager", "after_stream"]),
                LocalizedText("When calls start", "何时启动"),
                LocalizedText(
                    "eager: what only reads starts while the model still writes. after_stream: nothing starts before it has finished.",
                    "eager：只读的工具在模型还在输出时就启动。after_stream：输出结束之前什么都不启动。",
                ),
            ),
            field_row(
                "tool_call.protocol",
                Choice(&["vcp", "xml"]),
                LocalizedText("Text protocol", "文本协议"),
                LocalizedText(
                    "How calls are written in text mode; xml is what Hermes and Qwen models know.",
                    "文本模式下调用的写法；xml 是 Hermes 和 Qwen 模型熟悉的格式。",
                ),
            ),
            field_row(
                "tool_call.results",
                Choice(&["user", "tool"]),
                LocalizedText("Who says results", "由谁给出结果"),
                LocalizedText(
                    "In text mode. user: in a frame, which every server takes. tool: the tool role, for models trained so.",
                    "用于文本模式。user：放在框架里，所有服务都接受。tool：tool 角色，适合这样训练的模型。",
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
                LocalizedText("What you say meanwhile", "途中的发言"),
                LocalizedText(
                    "next_step: the model reads it at its next step. after_turn: it begins the next turn.",
                    "next_step：模型在下一步就读到。after_turn：作为下一轮的开始。",
                ),
            ),
            field_row(
                "on_interrupted",
                Choice(&["continue", "end"]),
                LocalizedText("After a crash", "崩溃之后"),
                LocalizedText(
                    "continue: the turn goes on from what was kept. end: it ends, and says that it broke off.",
                    "continue：从已保存的内容继续。end：结束并说明已中断。",
                ),
            ),
        ],
    },
    FieldGroup {
        name: "guard",
        label: LocalizedText("Loop guard", "循环保护"),
        help: LocalizedText(
            "For calls that repeat with the same arguments and the same result.",
            "针对参数和结果都相同的重复调用。",
        ),
        rows: &[
            field_row(
                "guard.period_max",
                Number,
                LocalizedText("Longest circle", "最长的循环"),
                LocalizedText("In calls. 0: the guard is off.", "以调用数计。0：关闭保护。"),
            ),
            field_row(
                "guard.note_after",
                Number,
                LocalizedText("Note after", "提醒"),
                LocalizedText(
                    "So many repeats, and the model is told. 0: never.",
                    "重复这么多次后提醒模型。0：从不。",
                ),
            ),
            field_row(
                "guard.ask_after",
                Number,
                LocalizedText("Ask after", "询问"),
                LocalizedText(
                    "So many repeats, and the next asks a person. 0: never.",
                    "重复这么多次后，下一次先询问人。0：从不。",
                ),
            ),
            field_row(
                "guard.stop_after",
                Number,
                LocalizedText("Stop after", "停止"),
                LocalizedText(
                    "So many repeats, and the next is refused; the last step follows. 0: never.",
                    "重复这么多次后拒绝下一次，随后是最后一步。0：从不。",
                ),
            ),
        ],
    },
    FieldGroup {
        name: "limits",
        label: LocalizedText("Limits", "上限"),
        help: LocalizedText(
            "Empty: the default, which holds for all agents. 0: none at all; of a time: at once.",
            "留空：默认值，适用于全部智能体。0：完全没有；时间则为立即。",
        ),
        rows: &[
            field_row(
                "limits.calls_per_turn_max",
                Number,
                LocalizedText("Calls in a turn", "每轮调用数"),
                LocalizedText("Further ones do not start.", "超过的不会启动。"),
            ),
            field_row(
                "limits.approval_ms_max",
                Number,
                LocalizedText("How long a question waits", "询问等待的时间"),
                LocalizedText("Then it counts as denied.", "超过即视为拒绝。"),
            ),
            field_row(
                "limits.output_bytes_max",
                Number,
                LocalizedText("Output of a call", "单个调用的输出"),
                LocalizedText(
                    "That is kept and told to the model; of more, head and tail.",
                    "保留并告诉模型的部分；超过时保留头尾。",
                ),
            ),
            field_row(
                "limits.shortened_output_bytes_max",
                Number,
                LocalizedText("Output in a history that is too long", "对话过长时的输出"),
                LocalizedText(
                    "Of an old call, once the upstream has refused the length; head and tail.",
                    "上游拒绝过长的对话之后，旧调用保留的部分；保留头尾。",
                ),
            ),
            field_row(
                "limits.messages_queued_max",
                Number,
                LocalizedText("Messages that wait", "排队的消息"),
                LocalizedText(
                    "Said while it runs; further ones are not taken.",
                    "运行途中的发言；超过的不接收。",
                ),
            ),
            field_row(
                "limits.questions_per_call_max",
                Number,
                LocalizedText("Questions of a tool", "工具的提问"),
                LocalizedText("In one call; further ones are cancelled.", "单个调用之内；超过的会被取消。"),
            ),
            field_row(
                "limits.asked_ms_max",
                Number,
                LocalizedText("Time for those", "回答它们的时间"),
                LocalizedText("In which the time limit of the tool stands still.", "期间不计入工具的时限。"),
            ),
            field_row(
                "limits.tool_overrun_ms",
                Number,
                LocalizedText("Overrun of a tool", "工具超时的宽限"),
                LocalizedText(
                    "Beyond its limit, to say that its time is up.",
                    "超过时限后，供它说明已超时。",
                ),
            ),
            field_row(
                "limits.cancel_grace_ms",
                Number,
                LocalizedText("Grace when stopped", "停止时的宽限"),
                LocalizedText("For a tool to say how it ended.", "供工具说明是如何结束的。"),
            ),
            field_row(
                "limits.own_tool_ms_max",
                Number,
                LocalizedText("Tools of the asker", "请求方自带的工具"),
                LocalizedText("How long they may take to answer.", "最长的答复时间。"),
            ),
            field_row(
                "limits.progress_events_max",
                Number,
                LocalizedText("Progress of a call", "单个调用的进度"),
                LocalizedText("Events that are kept.", "保留的事件数。"),
            ),
            field_row(
                "limits.problems_per_step_max",
                Number,
                LocalizedText("Findings in a step", "每步的发现"),
                LocalizedText("Of the decoder, that are kept.", "保留的解码器发现数。"),
            ),
            field_row(
                "limits.pauses_max",
                Number,
                LocalizedText("Pauses in a row", "连续暂停"),
                LocalizedText("That a provider may make and go on.", "服务商可以暂停后继续的次数。"),
            ),
            field_row(
                "limits.takeovers_max",
                Number,
                LocalizedText("Crashes survived", "崩溃后继续"),
                LocalizedText(
                    "So often a turn goes on; then it ends as interrupted.",
                    "一轮对话最多继续这么多次，之后以中断结束。",
                ),
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
