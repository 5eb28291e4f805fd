//! The time, here or in a city.

use super::super::language::DemoLanguage;
use super::super::tool_call::ArgumentWish;
use super::super::tool_outcome::ParsedOutcome;
use super::super::{cities, dates};
use super::{DemoScene, block_quote, text_then_calls};
use crate::script::{CallMove, ModelScript};

pub(super) const TOOL: &str = "time_now";

pub(super) fn reply(scene: &DemoScene<'_>) -> ModelScript {
    match scene.latest_outcome(TOOL) {
        Some(outcome) => ModelScript::new().say(sentence(scene, outcome)),
        None => match call(scene) {
            Some(call) => text_then_calls(
                scene.choose_text("One look at the clock …\n\n", "我看一眼时钟……\n\n"),
                vec![call],
            ),
            None => scene.tool_missing(TOOL),
        },
    }
}

/// A look at the clock, in the zone of the first city named.
pub(super) fn call(scene: &DemoScene<'_>) -> Option<CallMove> {
    let zone = cities::cities_in(scene.text).first().map(|city| city.zone);
    let wish = zone.map(|zone| ArgumentWish(&["timezone", "time_zone", "tz", "zone"], zone.into()));
    scene.call(TOOL, wish.as_slice())
}

pub(super) fn sentence(scene: &DemoScene<'_>, outcome: &ParsedOutcome) -> String {
    let ParsedOutcome::Output(text, _) = outcome else {
        let why = scene.describe_outcome(outcome);
        return scene
            .language
            .choose(format!("No luck with the clock: {why}"), format!("没能看到时间：{why}"));
    };
    let city = cities::cities_in(scene.text).first().map(|city| city.name(scene.language));
    match (dates::find_timestamp(text), scene.language, city) {
        (Some((day, time)), DemoLanguage::English, city) => {
            let city = city.map(|city| format!(" in {city}")).unwrap_or_default();
            format!("It is **{time}**{city}, on {}.", day.words(scene.language))
        }
        (Some((day, time)), DemoLanguage::Chinese, city) => {
            format!("{}现在是 **{time}**，{}。", city.unwrap_or_default(), day.words(scene.language))
        }
        (None, DemoLanguage::English, _) => format!("The clock says:\n\n{}", block_quote(text, 6)),
        (None, DemoLanguage::Chinese, _) => format!("时钟显示：\n\n{}", block_quote(text, 6)),
    }
}
