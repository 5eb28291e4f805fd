//! `time.now`: what time it is, anywhere.

use crate::context::ToolContext;
use crate::function::argument_schema;
use crate::tool::{AgentCallable, Tool, ToolError, ToolSpec};
use async_trait::async_trait;
use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use throughline_engine::Effect;
use throughline_engine::suggest_names;
use throughline_wire::{CallArguments, ToolOutput};

type ClockFn = dyn Fn() -> Timestamp + Send + Sync;

/// The tool `time.now`.
pub struct TimeNow {
    clock: Box<ClockFn>,
    zone: TimeZone,
}

impl Default for TimeNow {
    fn default() -> Self {
        // A container without a zone is on UTC, which is better than on `Etc/Unknown`.
        Self::new(Timestamp::now, TimeZone::try_system().unwrap_or(TimeZone::UTC))
    }
}

impl TimeNow {
    /// The tool with another clock, and with a default time zone for calls without one.
    pub fn new(clock: impl Fn() -> Timestamp + Send + Sync + 'static, zone: TimeZone) -> Self {
        Self { clock: Box::new(clock), zone }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TimeArguments {
    /// IANA time zone such as Asia/Shanghai or Europe/Berlin, or an offset such as +08:00. Without it: the user's zone.
    timezone: Option<String>,
}

#[async_trait]
impl Tool for TimeNow {
    fn definition(&self) -> ToolSpec {
        let mut spec = ToolSpec::new("time.now", "Current date, time and weekday in a time zone.");
        spec.title = "Current time".into();
        spec.parameters = argument_schema::<TimeArguments>();
        spec.effect = Effect::Read;
        spec.agent_callable = AgentCallable::Yes;
        spec.source = "builtin".into();
        spec
    }

    async fn call(&self, arguments: &CallArguments, _context: ToolContext) -> Result<ToolOutput, ToolError> {
        let arguments = TimeArguments::deserialize(&arguments.value)
            .map_err(|error| ToolError::invalid_arguments(error.to_string()))?;
        let zone = match arguments.timezone.as_deref().map(str::trim) {
            None | Some("") => self.zone.clone(),
            Some(name) => parse_zone(name).map_err(ToolError::invalid_arguments)?,
        };
        let now = (self.clock)();
        let local = now.to_zoned(zone);
        let iso = local.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string();
        let weekday = local.strftime("%A").to_string();
        let offset = local.strftime("%:z").to_string();
        let name = local.time_zone().iana_name().unwrap_or(&offset).to_owned();
        let text = format!("{iso} ({weekday}, {name})");
        let value =
            json!({"iso": iso, "weekday": weekday, "timezone": name, "unix_ms": now.as_millisecond()});
        Ok(ToolOutput { value: Some(value), ..ToolOutput::text(text) })
    }
}

fn parse_zone(name: &str) -> Result<TimeZone, String> {
    if let Ok(zone) = TimeZone::get(name) {
        return Ok(zone);
    }
    if let Some(offset) = parse_offset(name) {
        return Ok(TimeZone::fixed(offset));
    }
    let zones: Vec<String> = jiff::tz::db().available().map(|zone| zone.to_string()).collect();
    let suggestions = suggest_names(name, zones.iter().map(String::as_str));
    let hint = if suggestions.is_empty() {
        String::new()
    } else {
        format!("; did you mean {}?", suggestions.join(" or "))
    };
    let name: String = name.chars().take(100).collect();
    Err(format!(
        "/timezone: `{name}` is neither an IANA time zone (Asia/Shanghai) nor an offset (+08:00){hint}"
    ))
}

/// `+8`, `+08:00`, `UTC+8`, `GMT-3:30`: as people write it, the sign as in ISO 8601.
fn parse_offset(text: &str) -> Option<Offset> {
    let text = text.strip_prefix("UTC").or_else(|| text.strip_prefix("GMT")).unwrap_or(text).trim();
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some(parts) => parts,
        None if digits.len() == 4 && digits.is_ascii() => digits.split_at(2),
        None => (digits, "0"),
    };
    let number =
        |part: &str| part.parse::<i32>().ok().filter(|_| part.bytes().all(|byte| byte.is_ascii_digit()));
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    if hours > 14 || minutes > 59 {
        return None;
    }
    Offset::from_seconds(sign * (hours * 3600 + minutes * 60)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    async fn run_tool(arguments: Value) -> String {
        let clock = || "2026-11-21T16:30:00Z".parse().unwrap();
        let tool = TimeNow::new(clock, TimeZone::get("Asia/Shanghai").unwrap());
        match tool.call(&CallArguments::from_value(arguments), ToolContext::detached()).await {
            Ok(output) => output.text,
            Err(error) => error.to_string(),
        }
    }

    #[tokio::test]
    async fn time_now_accepts_zone_names_and_offsets() {
        for (zone, expected) in [
            (json!({}), "2026-11-22T00:30:00+08:00 (Sunday, Asia/Shanghai)"),
            (json!({"timezone": null}), "2026-11-22T00:30:00+08:00 (Sunday, Asia/Shanghai)"),
            (
                json!({"timezone": "America/New_York"}),
                "2026-11-21T11:30:00-05:00 (Saturday, America/New_York)",
            ),
            (json!({"timezone": "europe/berlin"}), "2026-11-21T17:30:00+01:00 (Saturday, Europe/Berlin)"),
            (json!({"timezone": "UTC"}), "2026-11-21T16:30:00+00:00 (Saturday, UTC)"),
            (json!({"timezone": "+08:00"}), "2026-11-22T00:30:00+08:00 (Sunday, +08:00)"),
            (json!({"timezone": "UTC+8"}), "2026-11-22T00:30:00+08:00 (Sunday, +08:00)"),
            (json!({"timezone": "GMT-3:30"}), "2026-11-21T13:00:00-03:30 (Saturday, -03:30)"),
            (json!({"timezone": "+0530"}), "2026-11-21T22:00:00+05:30 (Saturday, +05:30)"),
        ] {
            assert_eq!(run_tool(zone.clone()).await, expected, "{zone}");
        }
    }

    #[tokio::test]
    async fn unknown_time_zone_is_refused_with_a_suggestion() {
        let answer = run_tool(json!({"timezone": "Shanghai"})).await;
        assert!(answer.starts_with("invalid arguments: /timezone: `Shanghai` is neither"), "{answer}");
        assert!(answer.ends_with("did you mean Asia/Shanghai?"), "{answer}");
        for nonsense in ["../../etc/passwd", "+99:00", "+8:75", "+", "北京", "+-8", "++8"] {
            let answer = run_tool(json!({"timezone": nonsense})).await;
            assert!(answer.contains("is neither an IANA time zone"), "{nonsense}: {answer}");
        }
    }
}
