//! Measures an upstream: what it can do and where it departs from its API, by a handful of small requests. The result is a
//! table, and the settings that make up for what was found.

mod calls;
mod exchange;
mod raw_reply;
mod replies;
mod requests;
mod session;

use super::{ProbeError, Upstream};
use serde::Serialize;
use serde_json::Value;
use session::MeasureSession;

/// Number of requests of a measurement without refusals.
pub const MEASURE_REQUESTS: u32 = 8;
/// Maximum number of requests of one measurement, including repetitions in another form after a refusal.
pub const MEASURE_REQUESTS_MAX: u32 = 16;
/// Most tokens that each reply of a measurement may have, by default. Models that reason need some for that.
pub const MEASURE_TOKENS_MAX: u32 = 1_024;

/// Limits of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasureOptions {
    /// Most tokens of each reply. Default [`MEASURE_TOKENS_MAX`].
    pub tokens_max: u32,
    /// Time limit of one request with its whole reply, in milliseconds. Default 90,000: a local model may
    /// have to be loaded first.
    pub request_ms_max: u64,
}

impl Default for MeasureOptions {
    fn default() -> Self {
        Self { tokens_max: MEASURE_TOKENS_MAX, request_ms_max: 90_000 }
    }
}

/// A request of a measurement that is about to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasureProgress {
    /// Number of the request, from 1.
    pub request: u32,
    /// Purpose of the request.
    pub purpose: &'static str,
}

/// Judgment on a feature of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FeatureVerdict {
    /// The upstream has the feature.
    Yes,
    /// The upstream does not have the feature.
    No,
    /// The reply allows no judgment.
    Unclear,
    /// The feature was not tested: the API has no such field, or an earlier result makes the test pointless.
    NotTested,
}

/// One row of a measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MeasuredFeature {
    /// The feature, such as `parallel_calls`.
    pub feature: &'static str,
    /// Judgment.
    pub verdict: FeatureVerdict,
    /// The evidence, for people.
    pub detail: String,
    /// Name of the departure, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quirk: Option<&'static str>,
}

/// A setting of `[upstreams.NAME]` that makes up for a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MeasuredSetting {
    /// Key of the setting; keys of the profile begin with `profile.`.
    pub key: &'static str,
    /// Value of the setting.
    pub value: Value,
}

/// Result of a measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UpstreamMeasurement {
    /// Name of the upstream.
    pub upstream: String,
    /// The model that answered.
    pub model: String,
    /// The wire format.
    pub dialect: &'static str,
    /// Requests sent.
    pub requests: u32,
    /// One row for each feature.
    pub features: Vec<MeasuredFeature>,
    /// Settings that differ from those in use.
    pub settings: Vec<MeasuredSetting>,
}

impl UpstreamMeasurement {
    /// Names of the departures found.
    pub fn quirks(&self) -> Vec<&'static str> {
        self.features.iter().filter_map(|row| row.quirk).collect()
    }
}

impl Upstream {
    /// Measures a model of this upstream. `progress` hears of each request before it is sent; there are
    /// [`MEASURE_REQUESTS`] of them, and at most [`MEASURE_REQUESTS_MAX`] if some are refused. Dropping the future stops it.
    ///
    /// # Errors
    /// The upstream cannot be reached, rejects the key, has no such model, is too busy, or refuses the simplest request.
    pub async fn measure(
        &self,
        model: &str,
        options: MeasureOptions,
        progress: &mut (dyn FnMut(MeasureProgress) + Send),
    ) -> Result<UpstreamMeasurement, ProbeError> {
        let mut session = MeasureSession::new(self, model, options, progress)?;
        session.measure_replies().await?;
        session.measure_calls().await?;
        session.measure_formats().await?;
        Ok(session.into_measurement())
    }
}
