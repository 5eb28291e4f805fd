//! Things that go wrong on purpose, to show that a turn survives them.

use super::super::tool_call::ArgumentWish;
use super::super::tool_outcome::ParsedOutcome;
use super::{DemoScene, block_quote, text_then_calls, time};
use crate::script::{CallMove, ModelScript};
use serde_json::json;

const FAIL: &str = "demo_fail";
const WEATHER: &str = "demo_weather";
const READ: &str = "files_read";
/// Misspelled on purpose.
const MISSPELLED: &str = "demo_wether";

fn weather(scene: &DemoScene<'_>) -> Option<CallMove> {
    let city = scene.choose_text("Paris", "巴黎");
    scene.call(WEATHER, &[ArgumentWish(&["city", "location", "place", "name"], city.into())])
}

/// A tool that fails. Where none is offered that is made for it: a file that cannot be there.
pub(super) fn failure(scene: &DemoScene<'_>) -> ModelScript {
    let Some((call, outcome)) = scene.answered.last() else {
        let made_for_it = scene.call(FAIL, &[ArgumentWish(&["message", "reason"], "on purpose".into())]);
        let missing_file = || {
            let name = "there/is/no/such-file.txt";
            scene.call(READ, &[ArgumentWish(&["path", "file", "filename", "name"], name.into())])
        };
        let text = scene.choose_text(
            "Gladly. I'll call a tool of which I know that it will fail.\n\n",
            "乐意效劳。我来调用一个明知会失败的工具。\n\n",
        );
        return match made_for_it.or_else(missing_file) {
            Some(call) => text_then_calls(text, vec![call]),
            None => scene.tool_missing(FAIL),
        };
    };
    let heard = match outcome {
        ParsedOutcome::Failed(message) => message.clone(),
        other => scene.describe_outcome(other),
    };
    let heard = block_quote(&heard, 8);
    ModelScript::new().say(scene.language.choose(
        format!(
            "As promised, `{}` did not make it. This is what I was told:\n\n{heard}\nNothing is lost by that. A failed \
             tool never ends the message: its outcome is recorded, I am told the truth about it, and I go on talking, as \
             you can see.",
            call.name
        ),
        format!(
            "不出所料，`{}` 没有成功。我得到的消息是：\n\n{heard}\n这没有关系。工具失败不会中断这条消息：结果会如实记录、如实告诉我，\
             然后我接着往下说，就像现在这样。",
            call.name
        ),
    ))
}

/// Calls a name that is not offered, then the right one.
pub(super) fn unknown_tool(scene: &DemoScene<'_>) -> ModelScript {
    match (scene.latest_outcome(MISSPELLED), scene.latest_outcome(WEATHER)) {
        (None, _) if !scene.seen.may_call() => scene.tool_missing(WEATHER),
        (None, _) => {
            let text = scene.language.choose(
                format!("I'll call a tool and misspell its name: `{MISSPELLED}`.\n\n"),
                format!("我来调用一个工具，并故意把名字拼错：`{MISSPELLED}`。\n\n"),
            );
            let city = scene.choose_text("Paris", "巴黎");
            text_then_calls(text, vec![CallMove::new(MISSPELLED, json!({"city": city}))])
        }
        (Some(outcome), None) => {
            let closest = match outcome {
                ParsedOutcome::NoSuchTool(names) if !names.is_empty() => names.join("`, `"),
                _ => String::new(),
            };
            let heard = match (closest.is_empty(), outcome) {
                (false, _) => scene.language.choose(
                    format!("There is no such tool, and I am told the closest name: `{closest}`."),
                    format!("没有这个工具，不过我被告知了最接近的名字：`{closest}`。"),
                ),
                (true, _) => scene.language.choose(
                    format!("The answer: {}", scene.describe_outcome(outcome)),
                    format!("得到的回答：{}", scene.describe_outcome(outcome)),
                ),
            };
            match weather(scene) {
                Some(call) => {
                    let again = scene.choose_text("Once more, spelled right this time.", "这次拼对了再来。");
                    text_then_calls(format!("{heard} {again}\n\n"), vec![call])
                }
                None => ModelScript::new().say(heard),
            }
        }
        (Some(_), Some(outcome)) => report_second_try(scene, outcome),
    }
}

/// Arguments that do not fit the schema, then ones that do.
pub(super) fn wrong_arguments(scene: &DemoScene<'_>) -> ModelScript {
    let wrong = CallMove::new(WEATHER, json!({"town": 42}));
    corrected(
        scene,
        wrong,
        scene.choose_text(
            "I'll call `demo_weather` with arguments that make no sense: a *town* instead of a *city*, and a number at \
             that.\n\n",
            "我用毫无道理的参数来调用 `demo_weather`：把 *city* 写成 *town*，值还是个数字。\n\n",
        ),
    )
}

/// Argument text that breaks off, then whole one.
pub(super) fn broken_arguments(scene: &DemoScene<'_>) -> ModelScript {
    let broken = CallMove::new(WEATHER, "{\"city\": \"Par".into());
    corrected(
        scene,
        broken,
        scene.choose_text(
            "I'll call `demo_weather` and stop in the middle of its arguments: `{\"city\": \"Par`.\n\n",
            "我来调用 `demo_weather`，参数只写到一半：`{\"city\": \"Par`。\n\n",
        ),
    )
}

fn corrected(scene: &DemoScene<'_>, wrong: CallMove, lead: &str) -> ModelScript {
    match scene.answered.as_slice() {
        [] if !scene.offers(WEATHER) => scene.tool_missing(WEATHER),
        [] => text_then_calls(lead, vec![wrong]),
        [(_, outcome)] => {
            let heard = match outcome {
                ParsedOutcome::BadArguments(why) => block_quote(why, 6),
                other => block_quote(&scene.describe_outcome(other), 6),
            };
            let text = scene.language.choose(
                format!(
                    "The call was checked before anything ran, and refused:\n\n{heard}\nThat tells me what to mend.\n\n"
                ),
                format!("这个调用在执行之前就被检查出来并拒绝了：\n\n{heard}\n这样我就知道该改哪里了。\n\n"),
            );
            match weather(scene) {
                Some(call) => text_then_calls(text, vec![call]),
                None => ModelScript::new().say(text),
            }
        }
        [.., (_, outcome)] => report_second_try(scene, outcome),
    }
}

fn report_second_try(scene: &DemoScene<'_>, outcome: &ParsedOutcome) -> ModelScript {
    let (lead, end) = scene.language.choose(
        ("That worked:", "A mistake of the model costs one step, not the message."),
        ("这次成功了：", "模型犯一次错，代价是多一步，而不是整条消息。"),
    );
    match outcome {
        ParsedOutcome::Output(text, _) => {
            ModelScript::new().say(format!("{lead}\n\n{}\n{end}", block_quote(text, 8)))
        }
        other => ModelScript::new().say(scene.describe_outcome(other)),
    }
}

/// A call in every step, until no more are allowed.
pub(super) fn call_in_loop(scene: &DemoScene<'_>) -> ModelScript {
    let done = scene.answered.len();
    match time::call(scene) {
        Some(call) => {
            let text = match (done, scene.language) {
                (0, _) => scene
                    .choose_text("I'll look at the clock until somebody stops me. ", "我会一直看时钟，直到有人拦住我。")
                    .to_owned(),
                (n, super::DemoLanguage::English) => format!("{} … ", ordinal(n + 1)),
                (n, super::DemoLanguage::Chinese) => format!("第 {} 次……", n + 1),
            };
            text_then_calls(text, vec![call])
        }
        None if done == 0 => scene.tool_missing(time::TOOL),
        None => ModelScript::new().say(scene.language.choose(
            format!(
                "\n\nI have been stopped: after {done} calls no more are allowed in this message. So a model that runs in \
                 circles costs a few steps, and you still get an answer."
            ),
            format!("\n\n我被拦住了：调用 {done} 次之后，这条消息里不再允许调用。模型就算原地打转，也只会多花几步，而您仍然能得到回答。"),
        )),
    }
}

fn ordinal(n: usize) -> String {
    let end = match (n % 10, n % 100) {
        (1, tens) if tens != 11 => "st",
        (2, tens) if tens != 12 => "nd",
        (3, tens) if tens != 13 => "rd",
        _ => "th",
    };
    format!("{n}{end} time")
}
