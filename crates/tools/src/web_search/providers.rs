//! Requests and answers of the search services.

use super::TimeRange;
use super::hits::SearchHit;
use super::settings::SearchProvider;
use crate::schema::truncate_chars;
use bytes::Bytes;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use serde_json::{Value, json};
use throughline_wire::display_escape;

/// Longest text of a refusal, in characters.
const REFUSAL_CHARS_MAX: usize = 300;

/// A search request.
pub(super) struct SearchQuery<'a> {
    pub(super) text: &'a str,
    pub(super) count: usize,
    pub(super) time_range: Option<TimeRange>,
}

/// A search in a service's format.
pub(super) struct SearchRequest {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Bytes>,
}

pub(super) fn request(
    provider: SearchProvider,
    address: &Url,
    key: Option<&str>,
    query: &SearchQuery<'_>,
) -> Result<SearchRequest, String> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    let mut secret = |name: HeaderName, text: String| {
        // The error is not quoted: it may contain the key.
        let mut value =
            HeaderValue::try_from(text).map_err(|_| "the key cannot be sent in a header".to_owned())?;
        value.set_sensitive(true);
        headers.insert(name, value);
        Ok::<(), String>(())
    };
    let mut url = address.clone();
    let mut method = Method::GET;
    let mut body = None;
    match provider {
        SearchProvider::Searxng => {
            if let Some(key) = key {
                secret(AUTHORIZATION, format!("Bearer {key}"))?;
            }
            if !url.path().ends_with("/search") {
                let path = format!("{}/search", url.path().trim_end_matches('/'));
                url.set_path(&path);
            }
            url.query_pairs_mut().append_pair("q", query.text).append_pair("format", "json");
            if let Some(range) = query.time_range {
                url.query_pairs_mut().append_pair("time_range", range_word(range));
            }
        }
        SearchProvider::Brave => {
            secret(HeaderName::from_static("x-subscription-token"), key.unwrap_or_default().to_owned())?;
            url.query_pairs_mut().append_pair("q", query.text).append_pair("count", &query.count.to_string());
            if let Some(range) = query.time_range {
                let freshness = match range {
                    TimeRange::Day => "pd",
                    TimeRange::Week => "pw",
                    TimeRange::Month => "pm",
                    TimeRange::Year => "py",
                };
                url.query_pairs_mut().append_pair("freshness", freshness);
            }
        }
        SearchProvider::Tavily => {
            method = Method::POST;
            secret(AUTHORIZATION, format!("Bearer {}", key.unwrap_or_default()))?;
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            let mut asked = json!({"query": query.text, "max_results": query.count});
            if let Some(range) = query.time_range {
                asked["time_range"] = range_word(range).into();
            }
            body = Some(Bytes::from(asked.to_string()));
        }
    }
    Ok(SearchRequest { method, url, headers, body })
}

fn range_word(range: TimeRange) -> &'static str {
    match range {
        TimeRange::Day => "day",
        TimeRange::Week => "week",
        TimeRange::Month => "month",
        TimeRange::Year => "year",
    }
}

/// Hits of an answer, without those that have no address or repeat a page.
pub(super) fn hits(provider: SearchProvider, body: &str, count: usize) -> Result<Vec<SearchHit>, String> {
    let answer: Value =
        serde_json::from_str(body).map_err(|error| format!("{provider} answered no JSON: {error}"))?;
    let (list, snippet, dates): (&Value, &str, &[&str]) = match provider {
        SearchProvider::Searxng => (&answer["results"], "content", &["publishedDate"]),
        SearchProvider::Brave => (&answer["web"]["results"], "description", &["page_age", "age"]),
        SearchProvider::Tavily => (&answer["results"], "content", &["published_date"]),
    };
    let list = match (list, provider) {
        (Value::Array(list), _) => list.as_slice(),
        // Without a hit Brave leaves `web` out.
        (Value::Null, SearchProvider::Brave) if answer.is_object() => &[],
        _ => return Err(format!("{provider} answered without a list of results")),
    };
    let mut hits: Vec<SearchHit> = Vec::new();
    for item in list {
        let text = |key: &str| item[key].as_str();
        let published = dates.iter().find_map(|key| text(key));
        let hit = SearchHit::new(
            text("title").unwrap_or_default(),
            text("url").unwrap_or_default(),
            text(snippet).unwrap_or_default(),
            published,
        );
        if let Some(hit) = hit.filter(|hit| hits.iter().all(|other| other.url != hit.url)) {
            hits.push(hit);
        }
        if hits.len() == count {
            break;
        }
    }
    if hits.is_empty()
        && let Some(why) = engines_failed(&answer)
    {
        return Err(why);
    }
    Ok(hits)
}

/// SearXNG finds nothing if none of its engines answers, and reports that next to an empty list.
fn engines_failed(answer: &Value) -> Option<String> {
    let engines = answer["unresponsive_engines"].as_array().filter(|engines| !engines.is_empty())?;
    let named = engines.iter().take(5).map(|engine| {
        let (name, why) = (engine[0].as_str().unwrap_or_default(), engine[1].as_str().unwrap_or_default());
        format!("{name} ({why})")
    });
    let named = named.collect::<Vec<_>>().join(", ");
    Some(format!("SearXNG found nothing, and its engines did not answer: {}", display_escape::escape(&named)))
}

/// Sentence about an answer without results because of an error.
pub(super) fn refusal(provider: SearchProvider, status: u16, body: &str) -> String {
    let answer: Value = serde_json::from_str(body).unwrap_or_default();
    let candidates =
        [&answer["error"]["detail"], &answer["detail"]["error"], &answer["detail"], &answer["error"]];
    let reason = candidates.iter().find_map(|text| text.as_str()).unwrap_or_default();
    let reason = truncate_chars(&display_escape::escape(reason), REFUSAL_CHARS_MAX);
    let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    let remedy = match (provider, status) {
        (SearchProvider::Searxng, 403) => {
            " (its operator must allow JSON: `formats: [html, json]` under `search` in settings.yml)"
        }
        (SearchProvider::Searxng, 429) => " (its limiter refused the request)",
        (_, 401 | 403) => " (check the key)",
        (SearchProvider::Brave, 422) if reason.to_lowercase().contains("token") => " (check the key)",
        (_, 429 | 432 | 433) => " (the limit of the key is reached)",
        (_, 300..=399) => " (it redirects; set the final address as `url`)",
        _ => "",
    };
    format!("{provider} refused the search with HTTP {status}{reason}{remedy}")
}
