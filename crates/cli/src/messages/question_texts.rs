//! Texts of the chat's questions: approvals, changed arguments, rules to remember, a tool's own questions.

use super::ui_text::{UiLanguage, UiText, words};

words! {
    allow_question: "Allow this call?", "允许这次调用吗？";
    keys_decide: "[a] approve  [d] deny  [s] deny and stop  [e] edit", "[a] 批准  [d] 拒绝  [s] 拒绝并停止  [e] 修改参数";
    key_remember: "[r] remember", "[r] 记住";
    key_all: "[A] approve all", "[A] 全部批准";
    key_later: "[Esc] later", "[Esc] 稍后";
    key_next: "[Tab] next question", "[Tab] 下一个问题";
    typed_decide: "a approve · A approve all · d [reason] deny · s [reason] deny and stop · e {JSON} edit · r remember › ", "a 批准 · A 全部批准 · d [理由] 拒绝 · s [理由] 拒绝并停止 · e {JSON} 修改参数 · r 记住 › ";
    typed_remember: "r turn|conversation|always [any]: remember the answer, for exactly these arguments or any", "r turn|conversation|always [any]：记住你的回答，仅限这些参数，或任何参数（any）";
    source: "from", "来源";
    time_left: "left", "后过期";
    no_arguments: "no arguments", "没有参数";
    reason_prompt: "Reason (shown to the model; Enter for none): ", "理由（会告知模型；直接回车表示不说明）：";
    stop_reason_prompt: "Deny and stop. Reason (Enter for none): ", "拒绝并停止本轮。理由（直接回车表示不说明）：";
    edit_title: "Edit the arguments", "修改参数";
    edit_keys: "Enter check and run · Ctrl-J new line · Ctrl-G open $EDITOR · Esc back", "回车检查并执行 · Ctrl-J 换行 · Ctrl-G 用 $EDITOR 编辑 · Esc 返回";
    edit_typed: "give the complete new arguments: e {\"name\": \"value\"}", "请给出完整的新参数：e {\"名称\": \"值\"}";
    no_editor: "set $EDITOR to use your own editor", "设置 $EDITOR 即可使用你自己的编辑器";
    remember_how_long: "Remember your answer for", "记住你的回答，有效范围";
    remember_scopes: "[t] this turn  [c] this conversation  [w] always  [Esc] do not remember", "[t] 本轮  [c] 本次对话  [w] 始终  [Esc] 不记住";
    remember_which: "For which calls of this tool?", "用于这个工具的哪些调用？";
    remember_arguments: "[x] exactly these arguments  [y] any arguments  [Esc] back", "[x] 仅限这些参数  [y] 任何参数  [Esc] 返回";
    remembered_call: "for this call only", "仅限这次调用";
    remembered_turn: "remembered for this turn", "本轮内记住";
    remembered_conversation: "remembered for this conversation", "本次对话内记住";
    remembered_always: "always remembered", "始终记住";
    these_arguments: "these arguments", "仅限这些参数";
    any_arguments: "any arguments", "任何参数";
    sending: "checking …", "检查中……";
    later_hint: "a question is waiting · Esc to show it", "有问题待回答 · Esc 显示";
    you_changed: "you changed", "你修改了";
    allowed_by: "allowed by", "放行规则";
    denied_by: "denied by", "拒绝规则";
    redefined: "the tool definition has changed; asking again", "工具定义已变更，需要重新询问";
    tool_asks: "The tool asks", "工具提问";
    form_keys: "Enter next · empty = default · Esc back · Ctrl-D decline · Ctrl-X cancel", "回车继续 · 留空 = 默认值 · Esc 返回 · Ctrl-D 拒绝回答 · Ctrl-X 取消";
    form_send: "[Enter] send  [Esc] back  [d] decline  [x] cancel", "[回车] 发送  [Esc] 返回  [d] 拒绝回答  [x] 取消";
    form_url: "The tool wants you to open this address. Throughline does not open it; do so only if you trust the tool:", "工具希望你打开下面的地址。Throughline 不会替你打开；信任该工具时再自行打开：";
    url_keys: "[a] done  [d] decline  [x] cancel", "[a] 已完成  [d] 拒绝  [x] 取消";
    typed_form: "! declines, !! cancels", "! 拒绝回答，!! 取消";
    typed_url: "a done · d decline · x cancel › ", "a 已完成 · d 拒绝 · x 取消 › ";
    field_needed: "an answer is required", "必须填写";
    field_optional: "may be left empty", "可以留空";
    field_number: "a number", "数字";
    field_whole_number: "a whole number", "整数";
    field_yes_or_no: "y or n", "y 或 n（是或否）";
    field_several: "several, separated by commas", "可多选，用逗号分隔";
    yes: "yes", "是";
    no: "no", "否";
    not_an_object: "arguments must be a JSON object: {\"name\": \"value\"}", "参数应为 JSON 对象：{\"名称\": \"值\"}";
    not_understood: "Answer not recognized.", "无法识别的回答。";
}

impl UiText {
    /// "at least 2 characters".
    pub(crate) fn field_too_short(self, least: u64) -> String {
        self.choose(format!("at least {least} characters"), format!("至少 {least} 个字符"))
    }

    /// "at most 2 characters".
    pub(crate) fn field_too_long(self, most: u64) -> String {
        self.choose(format!("at most {most} characters"), format!("最多 {most} 个字符"))
    }

    /// "a number, 1 – 4".
    pub(crate) fn field_between(self, bounds: &str) -> String {
        self.choose(format!("a number, {bounds}"), format!("数字，{bounds}"))
    }

    /// "1 to 3, or a name from the list".
    pub(crate) fn field_one_of(self, count: usize) -> String {
        self.choose(format!("1 to {count}, or a name from the list"), format!("1 到 {count}，或列表中的名称"))
    }

    /// "not JSON: …".
    pub(crate) fn not_json(self, why: &str) -> String {
        self.choose(format!("not JSON: {why}"), format!("不是 JSON：{why}"))
    }

    /// "2 of 3".
    pub(crate) fn nth_of(self, at: usize, count: usize) -> String {
        self.choose(format!("{at} of {count}"), format!("第 {at} 个，共 {count} 个"))
    }

    fn choose(self, english: String, chinese: String) -> String {
        match self.0 {
            UiLanguage::English => english,
            UiLanguage::Chinese => chinese,
        }
    }
}
