//! The time, here or in a city.

use super::super::language::Language;
use super::super::offer::Wish;
use super::super::told::Told;
use super::super::{places, when};
use super::{Scene, quoted, saying_then};
use crate::script::{CallMove, Script};

pub(super) const TOOL: &str = "time_now";

pub(super) fn reply(scene: &Scene<'_>) -> Script {
    match scene.told(TOOL) {
        Some(told) => Script::new().say(sentence(scene, told)),
        None => match call(scene) {
            Some(call) => {
                saying_then(scene.words("One look at the clock …\n\n", "我看一眼时钟……\n\n"), vec![call])
            }
            None => scene.missing(TOOL),
        },
    }
}

/// A look at the clock, in the zone of the first city named.
pub(super) fn call(scene: &Scene<'_>) -> Option<CallMove> {
    let zone = places::named_in(scene.text).first().map(|place| place.zone);
    let wish = zone.map(|zone| Wish(&["timezone", "time_zone", "tz", "zone"], zone.into()));
    scene.call(TOOL, wish.as_slice())
}

pub(super) fn sentence(scene: &Scene<'_>, told: &Told) -> String {
    let Told::Output(text, _) = told else {
        let why = scene.why(told);
        return scene
            .language
            .choose(format!("No luck with the clock: {why}"), format!("没能看到时间：{why}"));
    };
    let place = places::named_in(scene.text).first().map(|place| place.name(scene.language));
    match (when::moment_in(text), scene.language, place) {
        (Some((day, time)), Language::English, place) => {
            let place = place.map(|place| format!(" in {place}")).unwrap_or_default();
            format!("It is **{time}**{place}, on {}.", day.words(scene.language))
        }
        (Some((day, time)), Language::Chinese, place) => {
            format!("{}现在是 **{time}**，{}。", place.unwrap_or_default(), day.words(scene.language))
        }
        (None, Language::English, _) => format!("The clock says:\n\n{}", quoted(text, 6)),
        (None, Language::Chinese, _) => format!("时钟显示：\n\n{}", quoted(text, 6)),
    }
}
