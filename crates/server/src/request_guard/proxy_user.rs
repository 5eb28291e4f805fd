//! People whom a reverse proxy has signed in and names in a header. The header counts only on requests from
//! the proxy's addresses; on all others it is ignored.
//!
//! Browsers pass the proxy automatically, also on requests that a page of another site sends. So a request is
//! admitted only from the server's own page or from a program, and a state-changing request must prove that.

use crate::error::ApiError;
use crate::net::ConnectionInfo;
use crate::people;
use crate::principal::LOCAL_USER;
use http::request::Parts;
use http::{HeaderName, StatusCode};
use throughline::config::{PersonScope, TrustedProxySettings};

/// Most bytes of the header with a person's groups.
const GROUPS_BYTES_MAX: usize = 16 << 10;

/// The proxy of the configuration.
pub(super) struct TrustedProxy {
    settings: TrustedProxySettings,
    header: HeaderName,
    groups_header: Option<HeaderName>,
    first_person: Option<String>,
}

/// A person whom the proxy has signed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProxiedPerson {
    pub(super) name: String,
    /// True if the groups make them an admin; `None` if groups decide nothing.
    pub(super) is_admin: Option<bool>,
}

impl TrustedProxy {
    pub(super) fn new(settings: TrustedProxySettings) -> Option<Self> {
        // The configuration has refused what is no name of a header.
        let header = HeaderName::try_from(&settings.header).ok()?;
        let groups_header = settings.groups_header.as_ref().and_then(|name| HeaderName::try_from(name).ok());
        let first_person =
            settings.first_person.as_deref().and_then(|name| people::normalize_name(name).ok());
        Some(Self { settings, header, groups_header, first_person })
    }

    /// True if unknown people are added as users.
    pub(super) fn creates(&self) -> bool {
        self.settings.create
    }

    /// Scopes of people who are no admins.
    pub(super) fn person_scopes(&self) -> &[PersonScope] {
        &self.settings.person_scopes
    }

    /// The person whom the proxy names; `None` if the header is missing, or the request is not from the
    /// proxy.
    pub(super) fn person(&self, parts: &Parts) -> Result<Option<ProxiedPerson>, ApiError> {
        let peer = parts.extensions.get::<ConnectionInfo>().map(|connection| connection.peer.ip());
        if !peer.is_some_and(|peer| self.settings.from.iter().any(|range| range.contains(peer))) {
            return Ok(None);
        }
        let Some(text) = single_value(parts, &self.header)? else { return Ok(None) };
        let name = people::normalize_name(text).map_err(|error| self.refused(error.to_string()))?;
        let name = match &self.first_person {
            Some(first) if *first == name => LOCAL_USER.to_owned(),
            _ if name == LOCAL_USER => {
                let message =
                    format!("a proxy cannot sign in as `{LOCAL_USER}`, the first person of this server");
                return Err(ApiError::forbidden("first_user", message)
                    .remedy("set `first_person` of [server.trusted_proxy] to that person's account"));
            }
            _ => name,
        };
        let is_admin = self.check_groups(parts, &name)?;
        // The first person stays an admin.
        let is_admin = is_admin.filter(|_| name != LOCAL_USER);
        Ok(Some(ProxiedPerson { name, is_admin }))
    }

    /// True if the groups make the person an admin, if they let them in at all.
    fn check_groups(&self, parts: &Parts, name: &str) -> Result<Option<bool>, ApiError> {
        let Some(header) = &self.groups_header else { return Ok(None) };
        let text = single_value(parts, header)?.unwrap_or_default();
        if text.len() > GROUPS_BYTES_MAX {
            return Err(
                self.refused(format!("the header with the groups is longer than {GROUPS_BYTES_MAX} bytes"))
            );
        }
        let groups: Vec<&str> = text.split(',').map(str::trim).filter(|group| !group.is_empty()).collect();
        let is_in = |wanted: &[String]| wanted.iter().any(|wanted| groups.contains(&wanted.as_str()));
        if !self.settings.allowed_groups.is_empty() && !is_in(&self.settings.allowed_groups) {
            return Err(ApiError::forbidden(
                "not_allowed",
                format!("`{name}` is not in a group with access to this server"),
            )
            .remedy("ask the admin of this server, or of your accounts, to add you to such a group"));
        }
        Ok((!self.settings.admin_groups.is_empty()).then(|| is_in(&self.settings.admin_groups)))
    }

    fn refused(&self, message: String) -> ApiError {
        bad_header(&self.header, message)
    }
}

/// The one value of a header of the proxy.
fn single_value<'r>(parts: &'r Parts, header: &HeaderName) -> Result<Option<&'r str>, ApiError> {
    let mut values = parts.headers.get_all(header).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(bad_header(header, "the header occurs more than once".to_owned()));
    }
    match std::str::from_utf8(value.as_bytes()) {
        Ok(text) => Ok(Some(text)),
        Err(_) => Err(bad_header(header, "the header is not UTF-8".to_owned())),
    }
}

fn bad_header(header: &HeaderName, message: String) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, "proxy_header", message)
        .param(header.as_str())
        .remedy("configure the proxy to replace the client's value of this header by one name")
}

/// Refusal of a person whom the proxy has signed in and who is not a user of the server.
pub(super) fn unknown_person(name: &str) -> ApiError {
    ApiError::forbidden("unknown_person", format!("`{name}` is signed in but is not a person of this server"))
        .remedy(format!("an admin can add them: throughline users add {name}"))
}

/// Refusal of a person who was removed.
pub(super) fn removed_person(name: &str) -> ApiError {
    ApiError::forbidden("removed_person", format!("`{name}` was removed from this server"))
        .remedy(format!("an admin can restore them: throughline users add {name}"))
}

/// Refusal of a request with the key of one person and the name of another.
pub(super) fn identities_differ() -> ApiError {
    ApiError::bad_request("identities_differ", "the key and the proxy's sign-in belong to different people")
        .remedy("send the key without the proxy's sign-in, or use a key of the same user")
}

/// Refusal of a page of another origin, which the proxy's sign-in does not let in.
pub(super) fn needs_key_of_its_own() -> ApiError {
    ApiError {
        message: "the proxy's sign-in is not accepted for pages of another origin".to_owned(),
        ..ApiError::unauthenticated()
    }
    .remedy(
        "let that page send a key; if it is this server's own page, the proxy must forward `Host`, and \
     `hosts` in [server] must contain it",
    )
}
