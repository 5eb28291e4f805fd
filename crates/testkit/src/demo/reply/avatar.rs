//! A gesture of the avatar in mid-sentence: the text continues right after the call, in the same step.

use super::super::tool_call::ArgumentWish;
use super::super::tool_outcome::ParsedOutcome;
use super::DemoScene;
use crate::script::{ModelScript, ScriptMove};

const EXPRESSION: &str = "live2d_expression";
const MOTION: &str = "live2d_motion";

/// Keywords, whether it is a motion of the body, the name to ask for, and how the reply calls it.
const GESTURES: &[(&[&str], bool, &str, &str, &str)] = &[
    (&["wave", "挥手", "打个招呼"], true, "Wave", "a wave", "挥挥手"),
    (&["nod", "点头"], true, "Nod", "a nod", "点点头"),
    (&["dance", "跳舞"], true, "Dance", "a little dance", "跳一小段舞"),
    (&["wink", "眨眼"], false, "wink", "a wink", "眨眨眼"),
    (&["laugh", "大笑"], false, "laugh", "a laugh", "大笑"),
    (&["sad", "难过", "伤心"], false, "sad", "a sad face", "难过的表情"),
    (&["surprise", "惊讶"], false, "surprised", "a surprised face", "惊讶的表情"),
];

pub(super) fn reply(scene: &DemoScene<'_>) -> ModelScript {
    if let Some((_, outcome)) = scene.answered.last() {
        return ModelScript::new().say(closing_words(scene, outcome));
    }
    let lower = scene.text.to_lowercase();
    let wanted = GESTURES.iter().find(|(words, ..)| words.iter().any(|word| lower.contains(word)));
    let (_, moves, name, english, chinese) =
        wanted.copied().unwrap_or((&[], false, "smile", "a smile", "微笑"));
    let motion = || {
        scene.call(
            MOTION,
            &[ArgumentWish(&["group", "motion", "name"], name.into()), ArgumentWish(&["index"], 0.into())],
        )
    };
    let face =
        || scene.call(EXPRESSION, &[ArgumentWish(&["name", "expression", "id"], name.to_lowercase().into())]);
    let call = if moves { motion().or_else(face) } else { face().or_else(motion) };
    let Some(call) = call else { return scene.tool_missing(EXPRESSION) };
    let (before, after_call) = scene.language.choose(
        (
            format!("With pleasure: here comes {english} "),
            "… and I am still talking. A gesture is only cosmetic, so it need not wait until I have finished: it \
             fires as soon as its arguments are complete, in the middle of the sentence."
                .to_owned(),
        ),
        (
            format!("好的，这就{chinese}"),
            "……而我的话还没有说完。表情和动作只影响观感，不必等我把话讲完：参数一完整，它就在句子中间触发了。".to_owned(),
        ),
    );
    ModelScript::new().say(before).then(ScriptMove::Call(call)).say(after_call)
}

fn closing_words(scene: &DemoScene<'_>, outcome: &ParsedOutcome) -> String {
    let refused = outcome.field(&["applied"]).is_some_and(|applied| applied == "false");
    match outcome {
        ParsedOutcome::NoViewer => scene.choose_text(
            "\n\nOnly, there is no avatar connected at the moment that could have shown it. With a page that has one \
             open, you would have seen it.",
            "\n\n只是现在没有连接任何可以做动作的形象。如果打开了带形象的页面，您就能看到了。",
        ),
        ParsedOutcome::Output(..) if refused => scene.choose_text(
            "\n\nThe page says that it could not show it, though.",
            "\n\n不过页面说它没能显示出来。",
        ),
        ParsedOutcome::Output(..) => scene.choose_text("\n\nThe avatar says: done.", "\n\n形象回报：已完成。"),
        _ => {
            let why = scene.describe_outcome(outcome);
            return scene
                .language
                .choose(format!("\n\nIt did not come off, though: {why}"), format!("\n\n不过没有成功：{why}"));
        }
    }
    .to_owned()
}
