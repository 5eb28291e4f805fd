//! A measurement in progress: what was sent, what was learned, and the settings that follow from it.

use super::super::{ProbeError, ProbeFailure, Upstream, UpstreamClient};
use super::exchange::{MeasureAnswer, send};
use super::{
    FeatureVerdict, MEASURE_REQUESTS_MAX, MeasureOptions, MeasureProgress, MeasuredFeature, MeasuredSetting,
    UpstreamMeasurement,
};
use serde_json::Value;
use std::time::Duration;
use throughline_wire::{DecodeLimits, Dialect, ModelRequest, TransferMode, UpstreamProfile, encode};

/// A measurement in progress.
pub(super) struct MeasureSession<'a> {
    client: UpstreamClient,
    pub dialect: Dialect,
    pub model: String,
    options: MeasureOptions,
    progress: &'a mut (dyn FnMut(MeasureProgress) + Send),
    requests: u32,
    /// The profile as measured so far.
    pub profile: UpstreamProfile,
    pub transfer: TransferMode,
    /// Reasoning that came before calls.
    pub thinking: String,
    pub features: Vec<MeasuredFeature>,
    settings: Vec<MeasuredSetting>,
}

impl<'a> MeasureSession<'a> {
    pub(super) fn new(
        upstream: &Upstream,
        model: &str,
        options: MeasureOptions,
        progress: &'a mut (dyn FnMut(MeasureProgress) + Send),
    ) -> Result<Self, ProbeError> {
        let client = UpstreamClient::new(upstream.clone(), DecodeLimits::default())
            .map_err(|error| ProbeError { failure: ProbeFailure::Connection, why: error.to_string() })?;
        Ok(Self {
            client,
            dialect: upstream.dialect,
            model: model.to_owned(),
            options,
            progress,
            requests: 0,
            // Pictures are always sent: a profile without vision may be wrong.
            profile: UpstreamProfile { vision: true, ..upstream.profile.clone() },
            transfer: TransferMode::Stream,
            thinking: String::new(),
            features: Vec::new(),
            settings: Vec::new(),
        })
    }

    /// Sends a request as the upstream is known by now.
    pub(super) async fn ask(
        &mut self,
        purpose: &'static str,
        mut request: ModelRequest,
    ) -> Result<MeasureAnswer, ProbeError> {
        if self.requests >= MEASURE_REQUESTS_MAX {
            let why = format!("too many requests were rejected: {MEASURE_REQUESTS_MAX} were sent");
            return Err(ProbeError { failure: ProbeFailure::Refused, why });
        }
        self.requests += 1;
        (self.progress)(MeasureProgress { request: self.requests, purpose });
        request.model.clone_from(&self.model);
        request.settings.max_output_tokens = Some(self.options.tokens_max);
        let encoded = encode(self.dialect, &request, &self.profile, self.transfer)
            .map_err(|error| ProbeError { failure: ProbeFailure::Refused, why: error.to_string() })?;
        let timeout = Duration::from_millis(self.options.request_ms_max);
        send(&self.client, &encoded, &self.profile, self.transfer, timeout).await
    }

    /// The configuration has the role `developer` already.
    pub(super) fn is_developer_configured(&self) -> bool {
        self.client.upstream().profile.developer_role
    }

    /// Adds a row.
    pub(super) fn row(&mut self, feature: &'static str, verdict: FeatureVerdict, detail: impl Into<String>) {
        self.features.push(MeasuredFeature { feature, verdict, detail: detail.into(), quirk: None });
    }

    /// Adds a row about a departure.
    pub(super) fn quirk(
        &mut self,
        feature: &'static str,
        verdict: FeatureVerdict,
        quirk: &'static str,
        detail: impl Into<String>,
    ) {
        self.features.push(MeasuredFeature { feature, verdict, detail: detail.into(), quirk: Some(quirk) });
    }

    /// Adds a setting that makes up for something.
    pub(super) fn set(&mut self, key: &'static str, value: impl Into<Value>) {
        let value = value.into();
        self.settings.retain(|setting| setting.key != key);
        self.settings.push(MeasuredSetting { key, value });
    }

    pub(super) fn into_measurement(self) -> UpstreamMeasurement {
        let in_use = current_settings(self.client.upstream());
        let mut settings = self.settings;
        settings.retain(|setting| in_use(setting.key).as_ref() != Some(&setting.value));
        UpstreamMeasurement {
            upstream: self.client.upstream().name().to_owned(),
            model: self.model,
            dialect: self.dialect.name(),
            requests: self.requests,
            features: self.features,
            settings,
        }
    }
}

/// The values in use, by the key of the setting.
fn current_settings(upstream: &Upstream) -> impl Fn(&str) -> Option<Value> {
    let profile = serde_json::to_value(&upstream.profile).unwrap_or_default();
    let is_whole = upstream.transfer == TransferMode::Whole;
    move |key| match key.strip_prefix("profile.") {
        Some(name) => profile.get(name).cloned(),
        None => (key == "streaming" && is_whole).then(|| "off".into()),
    }
}
