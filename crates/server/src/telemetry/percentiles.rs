//! Percentiles of measured values.

use serde::Serialize;
use utoipa::ToSchema;

/// Middle and upper end of some values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, ToSchema)]
pub(crate) struct Percentiles {
    /// Number of values.
    pub count: u64,
    /// Half of them are at most this: the nearest rank, so one of the values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50: Option<f64>,
    /// 95 of 100 are at most this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p95: Option<f64>,
}

impl Percentiles {
    /// Percentiles of these values, in any order.
    pub(crate) fn of(mut values: Vec<f64>) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        let rank = |percent: usize| {
            let at = (values.len() * percent).div_ceil(100).checked_sub(1)?;
            values.get(at).copied()
        };
        Self { count: values.len() as u64, p50: rank(50), p95: rank(95) }
    }
}
