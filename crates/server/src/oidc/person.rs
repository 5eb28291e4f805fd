//! The person of an ID token, if they may come in.

use crate::error::ApiError;
use crate::people;
use crate::principal::{LOCAL_USER, ProviderPerson};
use serde_json::Value;
use throughline::config::{OidcSettings, PersonClaim};
use throughline_wire::display_escape;

/// The person whom verified claims name.
pub(super) fn person_of(settings: &OidcSettings, claims: &Value) -> Result<ProviderPerson, ApiError> {
    let email = claims["email"].as_str();
    let is_verified = claims["email_verified"] == Value::Bool(true) || settings.accept_unverified_email;
    if (settings.claim == PersonClaim::Email || !settings.allowed_domains.is_empty()) && !is_verified {
        return Err(ApiError::forbidden(
            "email_unverified",
            "the provider has not verified the e-mail address of this account",
        )
        .remedy(
            "verify the address at the provider; if the provider does not report this, the admin can set \
         `accept_unverified_email`",
        ));
    }
    let claim = settings.claim.name();
    let text = claims[claim].as_str().ok_or_else(|| bad_claim(claim, "is missing"))?;
    let name =
        people::normalize_name(text).map_err(|_| bad_claim(claim, "is not a valid name of a person"))?;
    let groups = groups_of(&claims[&settings.groups_claim]);
    let is_in = |wanted: &[String]| wanted.iter().any(|wanted| groups.contains(&wanted.as_str()));
    let domain = email.and_then(|email| email.rsplit_once('@')).map(|(_, domain)| domain.to_lowercase());
    let is_of_domain = domain.is_some_and(|domain| settings.allowed_domains.contains(&domain));
    if !(settings.allowed_domains.is_empty() || is_of_domain)
        || !(settings.allowed_groups.is_empty() || is_in(&settings.allowed_groups))
    {
        return Err(ApiError::forbidden("not_allowed", format!("`{name}` may not use this server"))
            .remedy("sign in with another account, or ask the admin of this server"));
    }
    if settings.first_person.as_deref().and_then(|first| people::normalize_name(first).ok()).as_ref()
        == Some(&name)
    {
        // The first person stays an admin.
        return Ok(ProviderPerson { name: LOCAL_USER.to_owned(), is_admin: None });
    }
    if name == LOCAL_USER {
        let message = format!("sign-in as `{LOCAL_USER}`, the first user of this server, is not possible");
        return Err(ApiError::forbidden("first_user", message)
            .remedy("an admin must set `first_person` of [server.oidc] to that person's account"));
    }
    let admins: Vec<String> =
        settings.admins.iter().filter_map(|admin| people::normalize_name(admin).ok()).collect();
    let decides = !settings.admins.is_empty() || !settings.admin_groups.is_empty();
    let is_admin = decides.then(|| admins.contains(&name) || is_in(&settings.admin_groups));
    Ok(ProviderPerson { name, is_admin })
}

/// A list of groups, or one group.
fn groups_of(claim: &Value) -> Vec<&str> {
    match claim {
        Value::String(group) => vec![group.as_str()],
        Value::Array(groups) => groups.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn bad_claim(claim: &str, why: &str) -> ApiError {
    ApiError::forbidden("bad_claim", format!("the claim `{}` of the ID token {why}", display_escape::escape(claim)))
        .param("claim")
        .remedy("ask the admin to set another claim in [server.oidc], or to add this claim to the account at the provider")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(change: impl FnOnce(&mut OidcSettings), claims: Value, expected: &str) {
        let mut settings = OidcSettings::new("https://accounts.example.com", "id");
        change(&mut settings);
        let got = match person_of(&settings, &claims) {
            Ok(ProviderPerson { name, is_admin: None }) => name,
            Ok(ProviderPerson { name, is_admin: Some(true) }) => format!("{name}, admin"),
            Ok(ProviderPerson { name, is_admin: Some(false) }) => format!("{name}, no admin"),
            Err(error) => error.code.to_owned(),
        };
        assert_eq!(got, expected, "{claims}");
    }

    #[test]
    fn claims_map_to_a_person_or_an_error() {
        let ann = || json!({"sub": "7", "email": "Ann@Example.com", "email_verified": true, "preferred_username": "ann"});
        let with = |name: &str, value: Value| {
            let mut claims = ann();
            claims[name] = value;
            claims
        };
        let list = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
        check(|_| (), ann(), "ann@example.com");
        check(|settings| settings.claim = PersonClaim::Sub, ann(), "7");
        check(|settings| settings.claim = PersonClaim::PreferredUsername, ann(), "ann");
        check(|_| (), with("email_verified", json!(false)), "email_unverified");
        check(|_| (), with("email_verified", Value::Null), "email_unverified");
        check(
            |settings| settings.accept_unverified_email = true,
            with("email_verified", Value::Null),
            "ann@example.com",
        );
        check(|_| (), with("email", Value::Null), "bad_claim");
        check(|_| (), with("email", json!("a b@example.com")), "bad_claim");
        check(|settings| settings.claim = PersonClaim::Sub, with("sub", json!("auth0|7")), "bad_claim");
        check(|settings| settings.claim = PersonClaim::Sub, with("sub", json!("Local")), "first_user");
        check(|settings| settings.first_person = Some("ANN@example.com".to_owned()), ann(), "local");
        check(|settings| settings.allowed_domains = list(&["example.com"]), ann(), "ann@example.com");
        for domain in ["example.org", "com", "evil.example.com"] {
            check(|settings| settings.allowed_domains = list(&[domain]), ann(), "not_allowed");
        }
        check(|settings| settings.allowed_groups = list(&["staff"]), ann(), "not_allowed");
        check(
            |settings| settings.allowed_groups = list(&["staff"]),
            with("groups", json!(["staff"])),
            "ann@example.com",
        );
        check(
            |settings| settings.admin_groups = list(&["ops"]),
            with("groups", json!("ops")),
            "ann@example.com, admin",
        );
        check(|settings| settings.admin_groups = list(&["ops"]), ann(), "ann@example.com, no admin");
        check(|settings| settings.admins = list(&["Ann@Example.COM"]), ann(), "ann@example.com, admin");
    }
}
