//! API keys. The secret itself is never here.

use super::people::KeyLimits;
use serde::{Deserialize, Serialize};

/// Interval at which the last use of a key is written: once a minute, in milliseconds.
pub const LAST_USED_INTERVAL_MS: i64 = 60_000;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRow {
    /// The part of the key that is no secret.
    pub id: String,
    /// User that the key identifies.
    pub user: String,
    /// Name given by its owner.
    pub name: String,
    /// Hash of the secret. Compared by the caller, in constant time.
    pub hash: String,
    pub scopes: Vec<String>,
    /// Milliseconds since 1970.
    pub created_at: i64,
    /// From then on it is worth nothing; milliseconds since 1970.
    pub expires_at: Option<i64>,
    /// To the minute; milliseconds since 1970.
    pub last_used_at: Option<i64>,
    /// Time of revocation, in milliseconds since 1970; a revoked key is invalid.
    pub revoked_at: Option<i64>,
    /// Limits of the key, besides those of its person.
    #[serde(default)]
    pub limits: KeyLimits,
}

impl KeyRow {
    /// True unless it is revoked or has expired at this time.
    pub fn is_valid(&self, now: i64) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|expires| now < expires)
    }
}
