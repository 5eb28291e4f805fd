//! A gesture of the avatar in mid-sentence: the text goes on right after the call, in the same step.

use super::super::offer::Wish;
use super::super::told::Told;
use super::Scene;
use crate::script::{Move, Script};

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

pub(super) fn reply(scene: &Scene<'_>) -> Script {
    if let Some((_, told)) = scene.answered.last() {
        return Script::new().say(after(scene, told));
    }
    let lower = scene.text.to_lowercase();
    let wanted = GESTURES.iter().find(|(words, ..)| words.iter().any(|word| lower.contains(word)));
    let (_, moves, name, english, chinese) =
        wanted.copied().unwrap_or((&[], false, "smile", "a smile", "微笑"));
    let motion =
        || scene.call(MOTION, &[Wish(&["group", "motion", "name"], name.into()), Wish(&["index"], 0.into())]);
    let face = || scene.call(EXPRESSION, &[Wish(&["name", "expression", "id"], name.to_lowercase().into())]);
    let call = if moves { motion().or_else(face) } else { face().or_else(motion) };
    let Some(call) = call else { return scene.missing(EXPRESSION) };
    let (before, behind) = scene.language.choose(
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
    Script::new().say(before).then(Move::Call(call)).say(behind)
}

fn after(scene: &Scene<'_>, told: &Told) -> String {
    let refused = told.field(&["applied"]).is_some_and(|applied| applied == "false");
    match told {
        Told::NoViewer => scene.words(
            "\n\nOnly, there is no avatar connected at the moment that could have shown it. With a page that has one \
             open, you would have seen it.",
            "\n\n只是现在没有连接任何可以做动作的形象。如果打开了带形象的页面，您就能看到了。",
        ),
        Told::Output(..) if refused => scene.words(
            "\n\nThe page says that it could not show it, though.",
            "\n\n不过页面说它没能显示出来。",
        ),
        Told::Output(..) => scene.words("\n\nThe avatar says: done.", "\n\n形象回报：已完成。"),
        _ => {
            let why = scene.why(told);
            return scene
                .language
                .choose(format!("\n\nIt did not come off, though: {why}"), format!("\n\n不过没有成功：{why}"));
        }
    }
    .to_owned()
}
