//! `[server.oidc]`: people sign in at a provider of OpenID Connect.

use super::error::ConfigError;
use super::file::ConfigFile;
use super::proxy_header::PersonScope;
use super::resolve::EnvVars;
use super::serving::{AuthMode, env_value};
use serde::Deserialize;
use std::fmt;
use toml::Spanned;
use url::Url;

/// Default duration of a sign-in, in hours.
const SESSION_HOURS_DEFAULT: u32 = 12;
/// Longest duration of a sign-in, in hours: 90 days.
const SESSION_HOURS_MAX: u32 = 90 * 24;
/// Default scopes in addition to `openid`.
const SCOPES_DEFAULT: [&str; 2] = ["profile", "email"];
/// Claim with the groups, by default.
const GROUPS_CLAIM_DEFAULT: &str = "groups";

/// `[server.oidc]` of the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OidcSection {
    /// Issuer: the address before `/.well-known/openid-configuration`.
    pub issuer: Spanned<String>,
    /// Id of this server at the provider.
    pub client_id: Spanned<String>,
    /// Environment variable with the client's secret. Default: none, for public clients.
    pub client_secret_env: Option<String>,
    /// Name of the provider on the button. Default: its host.
    pub name: Option<String>,
    /// Scopes in addition to `openid`. Default `profile` and `email`.
    pub scopes: Option<Vec<String>>,
    /// Claim that names the person: `email` (default), `preferred_username` or `sub`.
    #[serde(default)]
    pub claim: PersonClaim,
    /// Takes e-mail addresses that the provider does not call verified. Default false.
    #[serde(default)]
    pub accept_unverified_email: bool,
    /// Domains of e-mail addresses that may sign in. Default: all.
    #[serde(default)]
    pub allowed_domains: Vec<String>,
    /// Claim with the person's groups. Default `groups`.
    pub groups_claim: Option<String>,
    /// Groups whose members may sign in. Default: all people.
    #[serde(default)]
    pub allowed_groups: Vec<String>,
    /// People who are admins; others are not. Default: `throughline users` decides.
    #[serde(default)]
    pub admins: Vec<String>,
    /// Groups whose members are admins; others are not. Default: `throughline users` decides.
    #[serde(default)]
    pub admin_groups: Vec<String>,
    /// Creates users for unknown people at their first sign-in. Default false.
    #[serde(default)]
    pub create: bool,
    /// Scopes of people who are no admins: `chat`, `tools`, `agents`. Default `chat` and `tools`.
    pub person_scopes: Option<Vec<PersonScope>>,
    /// Name of the server's first user, `local`, at the provider.
    pub first_person: Option<String>,
    /// Duration of a sign-in, in hours. Default 12.
    pub session_hours: Option<Spanned<u32>>,
}

/// Claim that names a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PersonClaim {
    /// The e-mail address.
    #[default]
    Email,
    /// The name that the person has at the provider. It may change hands there.
    PreferredUsername,
    /// The provider's permanent, unique id of the person.
    Sub,
}

impl PersonClaim {
    /// Name of the claim.
    pub fn name(self) -> &'static str {
        match self {
            PersonClaim::Email => "email",
            PersonClaim::PreferredUsername => "preferred_username",
            PersonClaim::Sub => "sub",
        }
    }
}

/// Secret of a client at its provider. Its `Debug` form does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientSecretText(String);

impl ClientSecretText {
    /// Wraps a secret.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    /// The secret itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ClientSecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// `[server.oidc]`, decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OidcSettings {
    /// Issuer, exactly as the provider writes it.
    pub issuer: String,
    /// Id of this server at the provider.
    pub client_id: String,
    /// Secret of this server at the provider.
    pub client_secret: Option<ClientSecretText>,
    /// The variable that should hold the secret and is not set: the server does not start so.
    pub missing_secret: Option<String>,
    /// Name of the provider on the button.
    pub name: String,
    /// Scopes in addition to `openid`.
    pub scopes: Vec<String>,
    /// Claim that names the person.
    pub claim: PersonClaim,
    /// Takes e-mail addresses that the provider does not call verified.
    pub accept_unverified_email: bool,
    /// Domains of e-mail addresses that may sign in, in lower case; empty = all.
    pub allowed_domains: Vec<String>,
    /// Claim with the person's groups.
    pub groups_claim: String,
    /// Groups whose members may sign in; empty = all people.
    pub allowed_groups: Vec<String>,
    /// People who are admins.
    pub admins: Vec<String>,
    /// Groups whose members are admins.
    pub admin_groups: Vec<String>,
    /// Creates users for unknown people at their first sign-in.
    pub create: bool,
    /// Scopes of people who are no admins.
    pub person_scopes: Vec<PersonScope>,
    /// Name of the server's first user at the provider.
    pub first_person: Option<String>,
    /// Duration of a sign-in, in hours.
    pub session_hours: u32,
}

impl OidcSettings {
    /// Settings for a client of this issuer, with all defaults.
    pub fn new(issuer: impl Into<String>, client_id: impl Into<String>) -> Self {
        let issuer = issuer.into();
        let host = Url::parse(&issuer).ok().and_then(|url| url.host_str().map(str::to_owned));
        Self {
            name: host.unwrap_or_default(),
            issuer,
            client_id: client_id.into(),
            client_secret: None,
            missing_secret: None,
            scopes: SCOPES_DEFAULT.map(str::to_owned).to_vec(),
            claim: PersonClaim::default(),
            accept_unverified_email: false,
            allowed_domains: Vec::new(),
            groups_claim: GROUPS_CLAIM_DEFAULT.to_owned(),
            allowed_groups: Vec::new(),
            admins: Vec::new(),
            admin_groups: Vec::new(),
            create: false,
            person_scopes: PersonScope::DEFAULT.to_vec(),
            first_person: None,
            session_hours: SESSION_HOURS_DEFAULT,
        }
    }
}

pub(super) fn resolve_oidc(
    file: &ConfigFile,
    section: &OidcSection,
    environment: &EnvVars,
    auth: AuthMode,
) -> Result<OidcSettings, ConfigError> {
    if auth == AuthMode::Off {
        let message = "with `auth = \"off\"` all requests belong to one user, so sign-in is not possible";
        return Err(file.error(&section.issuer, message).help("auth = \"keys\" (the default)"));
    }
    check_issuer(file, &section.issuer)?;
    if section.client_id.get_ref().trim().is_empty() {
        let message = "`client_id` is empty; the provider needs it to identify this server";
        return Err(file
            .error(&section.client_id, message)
            .help("use the client id that the provider issued for this server"));
    }
    let variable = section.client_secret_env.as_ref();
    let client_secret = variable.and_then(|name| env_value(environment, name)).map(ClientSecretText::new);
    // Other commands do without it.
    let missing_secret = variable.filter(|_| client_secret.is_none()).cloned();
    let session_hours = match &section.session_hours {
        Some(hours) if !(1..=SESSION_HOURS_MAX).contains(hours.get_ref()) => {
            let message = format!("`session_hours` must be from 1 to {SESSION_HOURS_MAX}");
            return Err(file.error(hours, message));
        }
        Some(hours) => *hours.get_ref(),
        None => SESSION_HOURS_DEFAULT,
    };
    let defaults = OidcSettings::new(section.issuer.get_ref(), section.client_id.get_ref());
    Ok(OidcSettings {
        client_secret,
        missing_secret,
        name: section.name.clone().unwrap_or(defaults.name),
        scopes: section.scopes.clone().unwrap_or(defaults.scopes),
        claim: section.claim,
        accept_unverified_email: section.accept_unverified_email,
        allowed_domains: section.allowed_domains.iter().map(|domain| domain.to_lowercase()).collect(),
        groups_claim: section.groups_claim.clone().unwrap_or(defaults.groups_claim),
        allowed_groups: section.allowed_groups.clone(),
        admins: section.admins.clone(),
        admin_groups: section.admin_groups.clone(),
        create: section.create,
        person_scopes: section.person_scopes.clone().unwrap_or(defaults.person_scopes),
        first_person: section.first_person.clone(),
        session_hours,
        ..defaults
    })
}

/// Tokens and secrets travel there: HTTPS, or a provider on this machine.
fn check_issuer(file: &ConfigFile, issuer: &Spanned<String>) -> Result<(), ConfigError> {
    let help = "use the address before `/.well-known/openid-configuration`: \"https://accounts.example.com\"";
    let text = issuer.get_ref();
    let url = Url::parse(text).ok().filter(|url| url.query().is_none() && url.fragment().is_none());
    let Some(url) = url.filter(|url| matches!(url.scheme(), "http" | "https")) else {
        return Err(file.error(issuer, format!("`{text}` is not a valid issuer URL")).help(help));
    };
    let is_local = match url.host() {
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost",
        None => false,
    };
    if url.scheme() == "http" && !is_local {
        let message = format!(
            "`{text}` is not HTTPS: anyone who can intercept the connection could sign in as any user"
        );
        return Err(file.error(issuer, message).help(help));
    }
    Ok(())
}
