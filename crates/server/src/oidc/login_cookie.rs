//! State of a sign-in until it is finished, in a cookie of its browser: authenticated by a key of this process, good for a
//! time, and once. Strangers who begin sign-ins cost no memory here.

use crate::error::ApiError;
use crate::request_guard::random_bytes;
use crate::stamps::now_ms;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use subtle::ConstantTimeEq;

/// Time in which a sign-in at the provider must be finished.
pub(crate) const LOGIN_TTL: Duration = Duration::from_secs(10 * 60);
/// Bytes of the key that authenticates cookies.
const KEY_BYTES: usize = 32;
/// Longest cookie that is looked at, in bytes.
const COOKIE_BYTES_MAX: usize = 8 << 10;
/// Maximum number of remembered used states. Older ones are dropped: the provider also accepts a code only
/// once.
const USED_MAX: usize = 100_000;

/// A sign-in that has begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LoginState {
    pub(super) state: String,
    pub(super) nonce: String,
    pub(super) verifier: String,
    pub(super) return_to: String,
}

#[derive(Serialize, Deserialize)]
struct SealedLogin {
    login: LoginState,
    /// Milliseconds since 1970.
    expires_at: i64,
}

/// Cookies of sign-ins.
pub(super) struct LoginStates {
    key: Option<[u8; KEY_BYTES]>,
    /// States that were shown, until they would have expired.
    used: Mutex<HashMap<blake3::Hash, i64>>,
}

impl LoginStates {
    pub(super) fn new() -> Self {
        Self { key: random_bytes().ok(), used: Mutex::default() }
    }

    /// Forgets those that are too old.
    pub(super) fn evict_expired(&self) {
        let now = now_ms();
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.retain(|_, expires_at| now < *expires_at);
    }

    pub(super) fn seal(&self, login: &LoginState) -> Result<String, ApiError> {
        let expires_at = now_ms() + LOGIN_TTL.as_millis() as i64;
        self.seal_until(login, expires_at)
    }

    fn seal_until(&self, login: &LoginState, expires_at: i64) -> Result<String, ApiError> {
        let key = self.key.ok_or_else(|| ApiError::internal("no random bytes for cookies"))?;
        let sealed = SealedLogin { login: login.clone(), expires_at };
        let text = serde_json::to_vec(&sealed).map_err(ApiError::internal)?;
        let mac = blake3::keyed_hash(&key, &text);
        Ok(format!("{}.{}", URL_SAFE_NO_PAD.encode(&text), URL_SAFE_NO_PAD.encode(mac.as_bytes())))
    }

    /// The sign-in of this cookie, if the state that the provider has sent back is its own. It is used up by that.
    pub(super) fn open(&self, cookie: &str, state: &str) -> Option<LoginState> {
        let (text, mac) = cookie.split_once('.').filter(|_| cookie.len() <= COOKIE_BYTES_MAX)?;
        let text = URL_SAFE_NO_PAD.decode(text).ok()?;
        let mac: [u8; blake3::OUT_LEN] = URL_SAFE_NO_PAD.decode(mac).ok()?.try_into().ok()?;
        // Hashes compare in constant time.
        if blake3::keyed_hash(&self.key?, &text) != mac {
            return None;
        }
        let SealedLogin { login, expires_at } = serde_json::from_slice(&text).ok()?;
        let now = now_ms();
        if now >= expires_at || !bool::from(login.state.as_bytes().ct_eq(state.as_bytes())) {
            return None;
        }
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if used.len() >= USED_MAX {
            used.clear();
        }
        let is_new = used.insert(blake3::hash(login.state.as_bytes()), expires_at).is_none();
        is_new.then_some(login)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login() -> LoginState {
        let text = |name: &str| name.to_owned();
        LoginState { state: text("s"), nonce: text("n"), verifier: text("v"), return_to: text("/") }
    }

    #[test]
    fn cookie_is_valid_once_for_its_state_until_expiry() {
        let states = LoginStates::new();
        let cookie = states.seal(&login()).unwrap();
        assert_eq!(states.open(&cookie, "t"), None, "another state");
        assert_eq!(LoginStates::new().open(&cookie, "s"), None, "another process");
        let forged = cookie.replacen(&cookie[..4], "AAAA", 1);
        for bad in ["", ".", "a.b", &cookie[..cookie.len() - 1], &forged, &"a".repeat(COOKIE_BYTES_MAX + 1)] {
            assert_eq!(states.open(bad, "s"), None, "{bad:.20}");
        }
        assert_eq!(states.open(&cookie, "s"), Some(login()));
        assert_eq!(states.open(&cookie, "s"), None, "used");
        let late = states.seal_until(&login(), now_ms()).unwrap();
        assert_eq!(states.open(&late, "s"), None, "too late");
    }
}
