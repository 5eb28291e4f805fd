//! Tools for the demo: their data are invented, and every title, description and output states it.

use crate::context::{ToolContext, ToolProgress};
use crate::function::{NoArguments, tool};
use crate::tool::{Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use throughline_engine::Effect;
use throughline_wire::ToolOutput;

/// Most entries of the demo calendar; more fail, clearly.
pub const ENTRIES_MAX: usize = 100;
/// Time that the demo weather pretends to work.
pub const WEATHER_DURATION: Duration = Duration::from_millis(800);

/// `demo.weather` reads, `demo.calendar` writes, `demo.fail` fails.
pub fn tools() -> Vec<Arc<dyn Tool>> {
    tools_with(DemoCalendar::default())
}

/// The demo tools with a calendar that the caller can inspect.
pub fn tools_with(calendar: DemoCalendar) -> Vec<Arc<dyn Tool>> {
    vec![weather(), add_entry(calendar), fail()]
}

#[derive(Deserialize, JsonSchema)]
struct WeatherArguments {
    /// City, in any language.
    #[schemars(length(min = 1, max = 100))]
    city: String,
}

fn weather() -> Arc<dyn Tool> {
    let run = |arguments: WeatherArguments, context: ToolContext| async move {
        const STATIONS: u32 = 4;
        for station in 1..=STATIONS {
            tokio::select! {
                () = context.cancellation().cancelled() => return Err(ToolError::new("cancelled")),
                () = tokio::time::sleep(WEATHER_DURATION / STATIONS) => {}
            }
            let progress = ToolProgress::new(station.into()).with_total(STATIONS.into());
            context.report(progress.with_message(format!("demo station {station} of {STATIONS}")));
        }
        Ok(forecast(&arguments.city))
    };
    Arc::new(
        tool("demo.weather", "Demo: invented weather for a city. Not a real forecast.", run)
            .title("Weather (demo data)")
            .effect(Effect::Read)
            .agent_callable()
            .source("demo"),
    )
}

/// Forecast of a city: always the same weather for the same city.
fn forecast(city: &str) -> ToolOutput {
    const SKIES: [&str; 6] = ["sunny", "partly cloudy", "overcast", "light rain", "thunderstorms", "fog"];
    let name = city.trim().to_lowercase();
    let hash = blake3::hash(name.as_bytes());
    let [temperature, sky, humidity, wind, ..] = *hash.as_bytes();
    let temperature = i32::from(temperature % 36) - 3;
    let sky = SKIES[usize::from(sky) % SKIES.len()];
    let humidity = 30 + humidity % 61;
    let wind = wind % 40;
    let city = city.trim();
    let text = format!(
        "{city}: {temperature} °C, {sky}, humidity {humidity} %, wind {wind} km/h (demo data, not a forecast)"
    );
    let value = json!({
        "demo": true, "city": city, "temperature_c": temperature, "sky": sky, "humidity_percent": humidity, "wind_kmh": wind,
    });
    ToolOutput { value: Some(value), ..ToolOutput::text(text) }
}

/// The calendar of the demo: in memory, lost with the process. Clones share their entries.
#[derive(Clone, Debug, Default)]
pub struct DemoCalendar {
    entries: Arc<Mutex<Vec<CalendarEntry>>>,
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CalendarEntry {
    /// Title.
    pub title: String,
    /// When, as the model put it.
    pub when: String,
    /// The call that made it. A second try at the same call makes no second entry.
    pub idempotency_key: String,
}

impl DemoCalendar {
    /// All entries, oldest first.
    pub fn entries(&self) -> Vec<CalendarEntry> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds an entry and gives its number, from 1.
    fn add(&self, entry: CalendarEntry) -> Result<usize, ToolError> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = entries.iter().position(|known| known.idempotency_key == entry.idempotency_key) {
            return Ok(known + 1);
        }
        if entries.len() >= ENTRIES_MAX {
            return Err(ToolError::new(format!(
                "the demo calendar is full ({ENTRIES_MAX} entries); restart to empty it"
            )));
        }
        entries.push(entry);
        Ok(entries.len())
    }
}

#[derive(Deserialize, JsonSchema)]
struct EntryArguments {
    #[schemars(description = "Subject of the entry.")]
    #[schemars(length(min = 1, max = 200))]
    title: String,
    /// Date and time, best as 2026-11-21T15:00.
    #[schemars(length(min = 1, max = 100))]
    when: String,
}

fn add_entry(calendar: DemoCalendar) -> Arc<dyn Tool> {
    let run = move |arguments: EntryArguments, context: ToolContext| {
        let calendar = calendar.clone();
        async move {
            let EntryArguments { title, when } = arguments;
            let text = format!("{title}, {when}");
            let number = calendar.add(CalendarEntry {
                title,
                when,
                idempotency_key: context.idempotency_key().to_owned(),
            })?;
            Ok::<_, ToolError>(format!(
                "Entry {number} added to the demo calendar: {text}. (demo: kept in memory only)"
            ))
        }
    };
    Arc::new(
        tool("demo.calendar", "Demo: adds an entry to a calendar that exists in memory only.", run)
            .title("Calendar entry (demo)")
            .effect(Effect::Write)
            .agent_callable()
            .source("demo"),
    )
}

fn fail() -> Arc<dyn Tool> {
    let run = |_: NoArguments, _: ToolContext| async {
        Err::<(), _>(ToolError::new("demo.fail always fails to show an error. Retrying will not help."))
    };
    Arc::new(
        tool("demo.fail", "Demo: a tool that always fails, to show the handling of errors.", run)
            .title("Failing tool (demo)")
            .effect(Effect::Read)
            .agent_callable()
            .source("demo"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ToolExecutor, ToolInvocation, ToolRegistry, ToolToggles};
    use serde_json::Value;
    use throughline_wire::{CallArguments, CallOutcome};
    use tokio::time::Instant;

    async fn ends(calendar: &DemoCalendar, tool: &str, call: &str, arguments: Value) -> CallOutcome {
        let registry = ToolRegistry::builder().tools(tools_with(calendar.clone())).build().unwrap();
        let call = ToolInvocation::new(call, tool, CallArguments::from_value(arguments));
        ToolExecutor::default().run(&registry, call, |_| async {}).await
    }

    #[tokio::test(start_paused = true)]
    async fn demo_weather_is_delayed_and_deterministic() {
        let started = Instant::now();
        let CallOutcome::Done(first) =
            ends(&DemoCalendar::default(), "demo.weather", "c", json!({"city": "北京"})).await
        else {
            panic!("not done")
        };
        assert_eq!(started.elapsed(), WEATHER_DURATION);
        assert!(
            first.text.starts_with("北京: ") && first.text.ends_with("(demo data, not a forecast)"),
            "{}",
            first.text
        );
        assert_eq!(first.value.as_ref().map(|value| &value["demo"]), Some(&json!(true)));
        let again = ends(&DemoCalendar::default(), "demo.weather", "c", json!({"city": "北京"})).await;
        assert_eq!(again, CallOutcome::Done(first));
        assert_ne!(forecast("北京").value, forecast("上海").value);
    }

    #[tokio::test(start_paused = true)]
    async fn demo_calendar_adds_one_entry_per_call_and_is_bounded() {
        let calendar = DemoCalendar::default();
        let entry = json!({"title": "会议", "when": "2026-11-21T15:00"});
        for call in ["call_1", "call_2", "call_2"] {
            let CallOutcome::Done(output) = ends(&calendar, "demo.calendar", call, entry.clone()).await
            else {
                panic!("not done")
            };
            assert!(
                output.text.contains(&format!("Entry {} added to the demo calendar", &call[5..])),
                "{}",
                output.text
            );
        }
        assert_eq!(calendar.entries().len(), 2);
        for number in 3..=ENTRIES_MAX {
            ends(&calendar, "demo.calendar", &number.to_string(), entry.clone()).await;
        }
        let full = ends(&calendar, "demo.calendar", "one more", entry).await;
        assert!(
            matches!(&full, CallOutcome::Failed { message, .. } if message.contains("is full")),
            "{full:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn demo_fail_returns_failed() {
        let outcome = ends(&DemoCalendar::default(), "demo.fail", "c", json!({})).await;
        assert!(
            matches!(&outcome, CallOutcome::Failed { message, .. } if message.starts_with("demo.fail always fails"))
        );
    }

    #[test]
    fn demo_tools_are_labeled_and_calendar_cannot_start_early() {
        let registry = ToolRegistry::builder().tools(tools()).build().unwrap();
        let offered = registry.offered(&ToolToggles::default());
        assert_eq!(offered.len(), 3);
        for tool in &offered {
            assert!(
                tool.title.contains("demo") && tool.definition.description.starts_with("Demo: "),
                "{tool:?}"
            );
            assert_eq!(tool.source, "demo");
            let writes = tool.name.as_str() == "demo.calendar";
            assert_eq!(tool.effect.may_start_early(), !writes, "{}", tool.name);
        }
    }
}
