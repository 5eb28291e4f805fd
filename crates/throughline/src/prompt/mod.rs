//! System prompts: templates of the configuration, and what they know.
//!
//! Only what an operator wrote into a prompt field is a template. What users, models and tools say never is.
// R: X5

use jiff::tz::TimeZone;

/// Who sits in front of it, as far as templates are told.
#[derive(Clone, Debug, PartialEq)]
pub struct User {
    /// `{{ user }}`.
    pub name: String,
    /// In which `{{ date }}` and `{{ time }}` are told; `None` = this machine's.
    pub time_zone: Option<TimeZone>,
}

impl Default for User {
    /// Nobody in particular: an account's name goes to no provider unless somebody writes it into the configuration.
    fn default() -> Self {
        Self { name: "the user".to_owned(), time_zone: None }
    }
}
