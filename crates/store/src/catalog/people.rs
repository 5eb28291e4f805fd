//! People, and how much each person and each key may use.

use super::keys::KeyRow;
use serde::{Deserialize, Serialize};

/// One day in milliseconds.
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// A person who uses the server. The name is the owner of all their rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersonRow {
    pub name: String,
    /// True if their keys may have the scope `admin`.
    pub is_admin: bool,
    pub limits: UsageLimits,
    /// Milliseconds since 1970.
    pub created_at: i64,
    /// Time of removal, in milliseconds since 1970; a removed person cannot sign in.
    pub removed_at: Option<i64>,
}

/// Limits of use. Days and months are those of UTC; `None` = no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UsageLimits {
    /// Turns begun in a day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns_per_day_max: Option<u64>,
    /// Turns begun in a calendar month.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns_per_month_max: Option<u64>,
    /// Tokens read and written by models in a day. A turn that runs is finished: it may cross the limit, the next one may not begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_day_max: Option<u64>,
    /// Tokens read and written by models in a calendar month.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_month_max: Option<u64>,
}

impl UsageLimits {
    /// True if nothing is limited.
    pub(crate) fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }

    /// The limit that is reached, if one is.
    pub(crate) fn exceeded(&self, usage: &UsageReport) -> Option<(&'static str, u64, UsagePeriod)> {
        use UsagePeriod::{Day, Month};
        let limits = [
            ("turns_per_month_max", self.turns_per_month_max, usage.month.turns, Month),
            ("tokens_per_month_max", self.tokens_per_month_max, usage.month.tokens, Month),
            ("turns_per_day_max", self.turns_per_day_max, usage.today.turns, Day),
            ("tokens_per_day_max", self.tokens_per_day_max, usage.today.tokens, Day),
        ];
        let reached = limits.into_iter().find(|(_, max, used, _)| max.is_some_and(|max| *used >= max));
        reached.and_then(|(name, max, _, period)| Some((name, max?, period)))
    }
}

/// Limits of one key, besides those of its person.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KeyLimits {
    #[serde(flatten)]
    pub usage: UsageLimits,
    /// Agents and models that the key may use; `None` = all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub models: Option<Vec<String>>,
}

/// Time for which something is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsagePeriod {
    Day,
    Month,
}

impl UsagePeriod {
    /// The beginning of the next one, in milliseconds since 1970.
    pub fn next_start(self, now: i64) -> i64 {
        let day = day_of(now);
        match self {
            Self::Day => (day + 1) * DAY_MS,
            Self::Month => {
                let start = month_start(day);
                // The 32nd day of a month is in the next one.
                month_start(start + 31) * DAY_MS
            }
        }
    }
}

/// Turns and tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageCount {
    pub turns: u64,
    pub tokens: u64,
}

/// Use of a person or a key. Days and months are those of UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageReport {
    pub today: UsageCount,
    pub month: UsageCount,
}

/// Subject of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageOwner<'a> {
    /// A person, by name.
    Person(&'a str),
    /// A key, by id.
    Key(&'a str),
}

impl UsageOwner<'_> {
    pub(crate) fn stored(self) -> String {
        match self {
            Self::Person(name) => format!("u:{name}"),
            Self::Key(id) => format!("k:{id}"),
        }
    }
}

/// Key and limits of a turn that is about to begin. It counts for its user, and for the key if there is one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnCharge {
    pub key_id: Option<String>,
    pub user_limits: UsageLimits,
    pub key_limits: UsageLimits,
}

/// A limit that is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageExceeded {
    /// Name of the limit.
    pub limit: &'static str,
    /// Value of the limit.
    pub max: u64,
    /// True for a limit of the key, false for one of the person.
    pub is_of_key: bool,
    /// Beginning of the next day or month, in milliseconds since 1970.
    pub free_at: i64,
}

/// Outcome of adding or changing a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonChange {
    pub is_admin: Option<bool>,
    pub limits: Option<UsageLimits>,
    /// `Some(None)` = they may come in again.
    pub removed_at: Option<Option<i64>>,
}

impl PersonRow {
    /// True unless they were removed.
    pub fn is_active(&self) -> bool {
        self.removed_at.is_none()
    }
}

impl KeyRow {
    /// Accounts that a turn of this key counts against.
    pub fn charge(&self, person: UsageLimits) -> TurnCharge {
        TurnCharge { key_id: Some(self.id.clone()), user_limits: person, key_limits: self.limits.usage }
    }
}

/// Day of a time, in days since 1970.
pub(crate) fn day_of(ms: i64) -> i64 {
    ms.div_euclid(DAY_MS)
}

/// The first day of the month of a day, both counted since 1970.
pub(crate) fn month_start(day: i64) -> i64 {
    // Days since March 1st of the year 0, in eras of 400 years (Howard Hinnant, "chrono-compatible low-level date algorithms").
    let day_of_era = (day + 719_468).rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5;
    day - day_of_month
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_limit_resets_at_the_next_day_or_month() {
        // 2026-11-23 22:12, 1970-01-01, the leap days of 2000 and 2024, and the last millisecond of a year.
        for (now, month, next_day, next_month) in [
            (1_795_471_920_000, 20_758, 20_781, 20_788),
            (0, 0, 1, 31),
            (951_782_400_000, 10_988, 11_017, 11_017),
            (1_709_164_800_000, 19_754, 19_783, 19_783),
            (1_767_225_599_999, 20_423, 20_454, 20_454),
        ] {
            assert_eq!(month_start(day_of(now)), month, "{now}");
            assert_eq!(UsagePeriod::Day.next_start(now), next_day * DAY_MS, "{now}");
            assert_eq!(UsagePeriod::Month.next_start(now), next_month * DAY_MS, "{now}");
        }
    }
}
