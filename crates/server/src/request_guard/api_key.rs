//! API keys: `tl_<id>_<secret>`. Only a hash of the secret is stored, and the secret is shown once, when the
//! key is created.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::fmt;
use subtle::ConstantTimeEq;
use throughline_store::KeyRow;

/// Prefix of every key, so that scanners for leaked secrets find it.
const PREFIX: &str = "tl_";
/// Bytes of an id; it is no secret.
const ID_BYTES: usize = 16;
/// Bytes of a secret. A secret of this length cannot be guessed, so it needs no slow hash.
const SECRET_BYTES: usize = 32;
/// Context of the hash: another use of the same bytes has another hash.
const HASH_CONTEXT: &str = "throughline 2026-11-21 secret of an API key";
/// A key that is longer than any of ours is not looked at further.
const KEY_BYTES_MAX: usize = 128;

/// A key as its owner shows it. It is never logged: its `Debug` form has the id alone.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    id: String,
    secret: String,
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiKey({}, …)", self.id)
    }
}

/// The system has no random bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system provides no random bytes, so no secret can be generated")]
pub struct RandomnessError;

impl ApiKey {
    /// A new key.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn mint() -> Result<Self, RandomnessError> {
        let id = random_bytes::<ID_BYTES>()?.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { id, secret: URL_SAFE_NO_PAD.encode(random_bytes::<SECRET_BYTES>()?) })
    }

    /// A key out of what a client sent; `None` if it cannot be one of ours.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.trim().strip_prefix(PREFIX).filter(|_| text.len() <= KEY_BYTES_MAX)?;
        let (id, secret) = rest.split_once('_')?;
        let is_id = id.len() == 2 * ID_BYTES && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let is_secret = URL_SAFE_NO_PAD.decode(secret).is_ok_and(|bytes| bytes.len() == SECRET_BYTES);
        (is_id && is_secret).then(|| Self { id: id.to_owned(), secret: secret.to_owned() })
    }

    /// The part that is no secret.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The key whole, for its owner.
    pub fn reveal(&self) -> String {
        format!("{PREFIX}{}_{}", self.id, self.secret)
    }

    /// Hash of the secret, as stored.
    pub fn hash(&self) -> String {
        blake3::Hasher::new_derive_key(HASH_CONTEXT)
            .update(self.secret.as_bytes())
            .finalize()
            .to_hex()
            .to_string()
    }

    /// Compares the secret in constant time.
    pub fn matches(&self, row: &KeyRow) -> bool {
        self.hash().as_bytes().ct_eq(row.hash.as_bytes()).into()
    }
}

/// Returns `N` random bytes from the operating system.
pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N], RandomnessError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| RandomnessError)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(key: &ApiKey) -> KeyRow {
        KeyRow {
            id: key.id().to_owned(),
            user: "local".to_owned(),
            name: String::new(),
            hash: key.hash(),
            scopes: Vec::new(),
            created_at: 0,
            expires_at: None,
            last_used_at: None,
            revoked_at: None,
            limits: Default::default(),
        }
    }

    #[test]
    fn key_round_trips_and_debug_hides_its_secret() {
        let key = ApiKey::mint().unwrap();
        let shown = key.reveal();
        assert_eq!(ApiKey::parse(&shown).as_ref(), Some(&key));
        assert_eq!(ApiKey::parse(&format!(" {shown} ")).as_ref(), Some(&key));
        let row = row(&key);
        assert!(key.matches(&row));
        let secret = shown.rsplit_once(key.id()).map(|(_, rest)| &rest[1..]).unwrap_or_default();
        assert_eq!(secret.len(), 43);
        for text in [format!("{key:?}"), format!("{row:?}")] {
            assert!(!text.contains(secret), "{text}");
        }
    }

    #[test]
    fn key_with_another_secret_does_not_match() {
        let (key, other) = (ApiKey::mint().unwrap(), ApiKey::mint().unwrap());
        assert_ne!(key.id(), other.id());
        let forged = ApiKey { id: key.id.clone(), secret: other.secret.clone() };
        assert!(!forged.matches(&row(&key)));
        let empty = KeyRow { hash: String::new(), ..row(&key) };
        assert!(!key.matches(&empty), "a row without a hash fits no key");
    }

    #[test]
    fn malformed_keys_are_rejected() {
        let good = ApiKey::mint().unwrap().reveal();
        let (id, secret) = (&good[3..35], &good[36..]);
        let long = format!("tl_{id}_{secret}{}", "A".repeat(200));
        let short = format!("tl_{id}_{}", &secret[..42]);
        let upper = format!("tl_{}_{secret}", id.to_uppercase().replace(char::is_numeric, "A"));
        for text in
            ["", "tl_", "tl__", "sk-123", &good[3..], &good[..35], &long, &short, &upper, "tl_\u{1f600}_x"]
        {
            assert_eq!(ApiKey::parse(text), None, "{text}");
        }
        let empty_secret = format!("tl_{id}_");
        assert_eq!(ApiKey::parse(&empty_secret), None, "an empty secret is none");
    }
}
