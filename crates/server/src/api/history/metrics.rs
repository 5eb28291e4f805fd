//! Speed and success of turns and calls: percentiles, rates and time series.
//!
//! Computed on request from the newest samples of the time span: percentiles of samples are exact, percentiles of
//! prefilled buckets are not.

use super::CountInfo;
use crate::error::{ApiError, ErrorResponse};
use crate::extract::Query;
use crate::principal::{KeyScope, Principal};
use crate::stamps::now_ms;
use crate::state::AppState;
use crate::telemetry::Percentiles;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use throughline_store::{CallSample, MetricSamples, RatingValue, SampleRange, SampleRows, TurnSample};
use throughline_wire::display_escape;
use utoipa::{IntoParams, ToSchema};

/// Maximum number of turns, and of calls, in one answer: the newest ones. An answer that omits older ones reports it.
pub(super) const SAMPLES_MAX: u32 = 20_000;
/// Most tools in one answer, those called most.
pub(super) const TOOLS_MAX: usize = 100;
/// Most models, agents and kinds of errors in one answer, the most frequent.
pub(super) const METRIC_NAMES_MAX: usize = 100;
/// Most conversations in one answer, those with the most tokens.
pub(super) const METRIC_CONVERSATIONS_MAX: usize = 20;
/// Default number of buckets.
pub(super) const BUCKETS_DEFAULT: u32 = 48;
/// Most parts of the time: more than a chart has room for.
pub(super) const BUCKETS_MAX: u32 = 200;
/// Default time span of an answer: a day.
const SPAN_MS: i64 = 24 * 60 * 60 * 1_000;

/// Of which time.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct MetricsQuery {
    /// Begun then or later, in milliseconds since 1970. Default: 24 hours before `until`.
    from: Option<i64>,
    /// Begun before, in milliseconds since 1970. Default: now.
    until: Option<i64>,
    /// Into how many parts the time is cut, 1 to 200. Default 48.
    #[param(minimum = 1, maximum = 200)]
    buckets: Option<u32>,
}

/// Metrics of turns.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(super) struct TurnsMetrics {
    /// All that began in the time.
    pub total: u64,
    /// From the beginning of a turn to its first content, in milliseconds.
    pub first_token_ms: Percentiles,
    /// Tokens read by models, as upstreams count them.
    pub input_tokens: u64,
    /// Tokens written by models.
    pub output_tokens: u64,
    /// Tokens that models wrote per second of writing, as upstreams count them. Turns whose upstream reports no tokens
    /// are left out.
    pub tokens_per_second: Percentiles,
    /// Answers that their user rated up.
    pub rated_up: u64,
    /// Answers that their user rated down.
    pub rated_down: u64,
    /// Share of the rated answers that were rated up; null without ratings.
    pub positive_rate: Option<f64>,
}

/// Metrics of calls.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(super) struct CallsMetrics {
    /// All that began in the time.
    pub total: u64,
    /// Those that ran to an end of their own: `success`, `error`, `timed_out` or `unknown`.
    pub finished: u64,
    /// Those of them that are no `success`.
    pub failed: u64,
    /// `failed` in `finished`, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_rate: Option<f64>,
    /// Run time in milliseconds.
    pub duration_ms: Percentiles,
}

/// Metrics of the calls of one tool.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(super) struct ToolMetrics {
    #[schema(example = "time.now")]
    pub tool_name: String,
    /// Its calls.
    #[serde(flatten)]
    pub calls: CallsMetrics,
}

/// Turns of one model or agent.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(super) struct NamedTurnsMetrics {
    /// The model, as `upstream/model`, or the agent.
    #[schema(example = "deepseek/deepseek-chat")]
    pub name: String,
    /// Those that ended with the status `error` or `interrupted`.
    pub failed: u64,
    /// Its turns.
    #[serde(flatten)]
    pub turns: TurnsMetrics,
}

/// Figures of one conversation in a time span.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(super) struct ConversationMetrics {
    /// Id of the conversation.
    pub conversation_id: String,
    /// Its title, for people; empty if it is deleted meanwhile.
    pub title: String,
    /// Number of turns.
    pub turns: u64,
    /// Tokens read by models.
    pub input_tokens: u64,
    /// Tokens written by models.
    pub output_tokens: u64,
    /// Number of tool calls.
    pub calls: u64,
    /// Number of tool calls that failed.
    pub failed_calls: u64,
}

/// A part of the time.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(super) struct BucketMetrics {
    /// When it begins, in milliseconds since 1970.
    pub from: i64,
    /// Its turns.
    pub turns: TurnsMetrics,
    /// Its calls.
    pub calls: CallsMetrics,
}

/// Metrics of turns and calls in a time span.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(super) struct MetricsInfo {
    /// When the time begins, in milliseconds since 1970.
    pub from: i64,
    /// When it ends.
    pub until: i64,
    /// Length of a bucket in milliseconds; the last one may be shorter.
    pub bucket_ms: i64,
    /// Calls that wait for a person now.
    pub approvals_waiting: u64,
    /// All turns.
    pub turns: TurnsMetrics,
    /// Turns by status, the most frequent first.
    pub turns_by_status: Vec<CountInfo>,
    /// All calls.
    pub calls: CallsMetrics,
    /// Calls by status, the most frequent first.
    pub calls_by_status: Vec<CountInfo>,
    /// By tool, the most called first; at most 100.
    pub tools: Vec<ToolMetrics>,
    /// Tools beyond those.
    pub tools_left_out: u64,
    /// Turns by model, most first; at most 100.
    pub models: Vec<NamedTurnsMetrics>,
    /// Turns by agent, most first; at most 100.
    pub agents: Vec<NamedTurnsMetrics>,
    /// Failed calls by the code of their error, most frequent first; at most 100.
    pub errors: Vec<CountInfo>,
    /// Conversations with the most tokens; at most 20.
    pub conversations: Vec<ConversationMetrics>,
    /// The time in parts, without gaps.
    pub buckets: Vec<BucketMetrics>,
    /// The newest so many turns, and so many calls, are looked at.
    pub samples_max: u32,
    /// True if the time span has more turns; the figures cover the newest of them.
    pub turns_cut: bool,
    /// True if the time span has more calls; the figures cover the newest of them.
    pub calls_cut: bool,
}

/// Get metrics of a time span: time to first token, speed, tools and errors, with series for charts.
#[utoipa::path(get, path = "/v1/history/metrics", tag = "history", params(MetricsQuery), responses(
    (status = 200, description = "Metrics of the user's own turns and calls", body = MetricsInfo),
    (status = 400, description = "Invalid query", body = ErrorResponse),
))]
pub(super) async fn get_metrics(
    State(state): State<AppState>,
    principal: Principal,
    Query(query): Query<MetricsQuery>,
) -> Result<axum::Json<MetricsInfo>, ApiError> {
    principal.require(KeyScope::Chat)?;
    let until = query.until.unwrap_or_else(now_ms);
    let from = query.from.unwrap_or_else(|| until.saturating_sub(SPAN_MS));
    let buckets = query.buckets.unwrap_or(BUCKETS_DEFAULT);
    if from >= until {
        let message = format!("`from` ({from}) is not before `until` ({until})");
        return Err(ApiError::bad_request("invalid_value", message).param("from"));
    }
    if !(1..=BUCKETS_MAX).contains(&buckets) {
        let message = format!("`buckets` is {buckets}, and may be 1 to {BUCKETS_MAX}");
        return Err(ApiError::bad_request("invalid_value", message).param("buckets"));
    }
    let range = SampleRange { from, until, rows_max: SAMPLES_MAX };
    let samples = state.catalog.samples(&principal.user, &range).await?;
    // Sorting twenty thousand numbers takes a while, and other requests should not wait for it.
    let metrics = tokio::task::spawn_blocking(move || compute_metrics(&samples, &range, buckets));
    let mut metrics = metrics.await.map_err(ApiError::internal)?;
    for conversation in &mut metrics.conversations {
        let found = state.catalog.conversation(&principal.user, &conversation.conversation_id).await?;
        let title = found.map(|found| found.conversation.title).unwrap_or_default();
        conversation.title = display_escape::escape_prose(&title).into_owned();
    }
    Ok(axum::Json(metrics))
}

/// Metrics of samples in a time span that is cut into this many buckets, or fewer if it has fewer milliseconds.
pub(super) fn compute_metrics(samples: &MetricSamples, range: &SampleRange, buckets: u32) -> MetricsInfo {
    let span = range.until.saturating_sub(range.from).max(1);
    let bucket_ms = span.unsigned_abs().div_ceil(u64::from(buckets.max(1))) as i64;
    let parts = span.unsigned_abs().div_ceil(bucket_ms.unsigned_abs()) as usize;
    let mut bucket_turns = vec![TurnsTally::default(); parts];
    let mut bucket_calls = vec![CallsTally::default(); parts];
    let at = |time: i64| usize::try_from(time.saturating_sub(range.from) / bucket_ms).ok();
    let mut turns = TurnsTally::default();
    let (mut models, mut agents) = (BTreeMap::new(), BTreeMap::new());
    let mut conversations = BTreeMap::<&str, ConversationMetrics>::new();
    for turn in &samples.turns.rows {
        turns.add(turn);
        if let Some(model) = &turn.model {
            tally_of(&mut models, model).add(turn);
        }
        tally_of(&mut agents, &turn.agent).add(turn);
        if let Some(id) = &turn.conversation_id {
            let found = conversations.entry(id).or_insert_with(|| ConversationMetrics::of(id));
            found.turns += 1;
            found.input_tokens = found.input_tokens.saturating_add(count_of(turn.input_tokens));
            found.output_tokens = found.output_tokens.saturating_add(count_of(turn.pace.output_tokens));
        }
        if let Some(bucket) = at(turn.created_at).and_then(|at| bucket_turns.get_mut(at)) {
            bucket.add(turn);
        }
    }
    let (mut calls, mut tools) = (CallsTally::default(), BTreeMap::<&str, CallsTally>::new());
    let mut errors = BTreeMap::<&str, u64>::new();
    for call in &samples.calls.rows {
        calls.add(call);
        let failed = is_failed(&call.status);
        if failed {
            // The code of an error comes first, its message after a colon.
            let error = call.error.as_deref().and_then(|error| error.split(':').next());
            *errors.entry(error.unwrap_or(&call.status)).or_default() += 1;
        }
        if let Some(found) = call.conversation_id.as_deref().and_then(|id| conversations.get_mut(id)) {
            found.calls += 1;
            found.failed_calls += u64::from(failed);
        }
        tools.entry(&call.tool_name).or_default().add(call);
        if let Some(bucket) = at(call.started_at).and_then(|at| bucket_calls.get_mut(at)) {
            bucket.add(call);
        }
    }
    let mut tools: Vec<_> = tools.into_iter().collect();
    tools.sort_by_key(|(_, calls)| std::cmp::Reverse(calls.total));
    let tools_left_out = tools.len().saturating_sub(TOOLS_MAX) as u64;
    tools.truncate(TOOLS_MAX);
    let begins = (0..).map(|number: i64| range.from.saturating_add(number.saturating_mul(bucket_ms)));
    MetricsInfo {
        from: range.from,
        until: range.until,
        bucket_ms,
        approvals_waiting: samples.waiting,
        turns: turns.into_metrics(),
        turns_by_status: by_status(&samples.turns, |turn| &turn.status),
        calls: calls.into_metrics(),
        calls_by_status: by_status(&samples.calls, |call| &call.status),
        tools: tools
            .into_iter()
            .map(|(name, calls)| ToolMetrics { tool_name: name.to_owned(), calls: calls.into_metrics() })
            .collect(),
        tools_left_out,
        models: named_turns(models),
        agents: named_turns(agents),
        errors: most_frequent(errors),
        conversations: most_tokens(conversations.into_values().collect()),
        buckets: begins
            .zip(bucket_turns.into_iter().zip(bucket_calls))
            .map(|(from, (turns, calls))| BucketMetrics {
                from,
                turns: turns.into_metrics(),
                calls: calls.into_metrics(),
            })
            .collect(),
        samples_max: range.rows_max,
        turns_cut: samples.turns.truncated,
        calls_cut: samples.calls.truncated,
    }
}

fn tally_of<'a, 'b>(tallies: &'b mut BTreeMap<&'a str, TurnsTally>, name: &'a str) -> &'b mut TurnsTally {
    tallies.entry(name).or_default()
}

fn named_turns(tallies: BTreeMap<&str, TurnsTally>) -> Vec<NamedTurnsMetrics> {
    let mut named: Vec<_> = tallies.into_iter().collect();
    named.sort_by_key(|(_, tally)| std::cmp::Reverse(tally.total));
    named.truncate(METRIC_NAMES_MAX);
    let named = named.into_iter();
    named
        .map(|(name, tally)| NamedTurnsMetrics {
            name: name.to_owned(),
            failed: tally.failed,
            turns: tally.into_metrics(),
        })
        .collect()
}

fn most_tokens(mut conversations: Vec<ConversationMetrics>) -> Vec<ConversationMetrics> {
    conversations.sort_by_key(|found| {
        std::cmp::Reverse((found.input_tokens.saturating_add(found.output_tokens), found.turns))
    });
    conversations.truncate(METRIC_CONVERSATIONS_MAX);
    conversations
}

/// A number that is never negative.
fn count_of(number: Option<i64>) -> u64 {
    number.and_then(|number| u64::try_from(number).ok()).unwrap_or_default()
}

/// True for a failed call: not one that a person or a rule denied or stopped.
fn is_failed(status: &str) -> bool {
    matches!(status, "error" | "timed_out" | "unknown")
}

impl ConversationMetrics {
    fn of(id: &str) -> Self {
        Self {
            conversation_id: id.to_owned(),
            title: String::new(),
            turns: 0,
            input_tokens: 0,
            output_tokens: 0,
            calls: 0,
            failed_calls: 0,
        }
    }
}

#[derive(Clone, Default)]
struct TurnsTally {
    total: u64,
    failed: u64,
    input_tokens: u64,
    output_tokens: u64,
    rated_up: u64,
    rated_down: u64,
    first_token_ms: Vec<f64>,
    tokens_per_second: Vec<f64>,
}

impl TurnsTally {
    fn add(&mut self, turn: &TurnSample) {
        self.total += 1;
        self.failed += u64::from(matches!(turn.status.as_str(), "error" | "interrupted"));
        self.input_tokens = self.input_tokens.saturating_add(count_of(turn.input_tokens));
        self.output_tokens = self.output_tokens.saturating_add(count_of(turn.pace.output_tokens));
        match turn.rating {
            Some(RatingValue::Up) => self.rated_up += 1,
            Some(RatingValue::Down) => self.rated_down += 1,
            None => {}
        }
        self.first_token_ms.extend(turn.pace.first_content_ms.map(|ms| ms as f64));
        if let (Some(tokens), Some(ms)) = (turn.pace.output_tokens, turn.pace.writing_ms)
            && ms > 0
        {
            self.tokens_per_second.push(tokens as f64 * 1_000.0 / ms as f64);
        }
    }

    fn into_metrics(self) -> TurnsMetrics {
        let rated = self.rated_up + self.rated_down;
        TurnsMetrics {
            total: self.total,
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            first_token_ms: Percentiles::of(self.first_token_ms),
            tokens_per_second: Percentiles::of(self.tokens_per_second),
            rated_up: self.rated_up,
            rated_down: self.rated_down,
            positive_rate: (rated > 0).then(|| self.rated_up as f64 / rated as f64),
        }
    }
}

#[derive(Clone, Default)]
struct CallsTally {
    total: u64,
    succeeded: u64,
    failed: u64,
    duration_ms: Vec<f64>,
}

impl CallsTally {
    fn add(&mut self, call: &CallSample) {
        self.total += 1;
        match call.status.as_str() {
            "success" => self.succeeded += 1,
            status if is_failed(status) => self.failed += 1,
            // What a person or a rule refused, stopped or still thinks about is no fault of the tool.
            _ => {}
        }
        self.duration_ms.extend(call.duration_ms.map(|ms| ms as f64));
    }

    fn into_metrics(self) -> CallsMetrics {
        let finished = self.succeeded + self.failed;
        CallsMetrics {
            total: self.total,
            finished,
            failed: self.failed,
            error_rate: (finished > 0).then(|| self.failed as f64 / finished as f64),
            duration_ms: Percentiles::of(self.duration_ms),
        }
    }
}

fn by_status<T>(samples: &SampleRows<T>, status: impl Fn(&T) -> &String) -> Vec<CountInfo> {
    let mut counts = BTreeMap::<&str, u64>::new();
    for sample in &samples.rows {
        *counts.entry(status(sample)).or_default() += 1;
    }
    most_frequent(counts)
}

fn most_frequent(counts: BTreeMap<&str, u64>) -> Vec<CountInfo> {
    let mut counts: Vec<_> =
        counts.into_iter().map(|(name, count)| CountInfo { name: name.to_owned(), count }).collect();
    counts.sort_by_key(|count| std::cmp::Reverse(count.count));
    counts.truncate(METRIC_NAMES_MAX);
    counts
}

#[cfg(test)]
mod tests;
