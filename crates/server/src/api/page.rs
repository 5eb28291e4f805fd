//! Lists in pages, the same for every resource.

use crate::error::ApiError;
use serde::{Deserialize, Serialize};
use throughline_store::{PAGE_ROWS_DEFAULT, PAGE_ROWS_MAX, PageRequest, ResultPage};
use utoipa::{IntoParams, ToSchema};

/// Page of a list.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageQuery {
    /// `next` of the previous page.
    pub cursor: Option<String>,
    /// Maximum number of rows, 1 to 200. Default 50.
    #[param(minimum = 1, maximum = 200)]
    pub limit: Option<u32>,
}

impl PageQuery {
    /// The page of a list in the form that the catalog takes.
    ///
    /// # Errors
    /// 400: the limit is 0 or above the maximum.
    pub(crate) fn page_request(cursor: Option<String>, limit: Option<u32>) -> Result<PageRequest, ApiError> {
        let limit = limit.unwrap_or(PAGE_ROWS_DEFAULT);
        if limit == 0 || limit > PAGE_ROWS_MAX {
            let what = format!("`limit` is from 1 to {PAGE_ROWS_MAX}");
            return Err(ApiError::bad_request("invalid_value", what).param("limit"));
        }
        // `cursor=` is what a form sends that has none yet.
        Ok(PageRequest { cursor: cursor.filter(|cursor| !cursor.is_empty()), limit })
    }
}

/// Page of a list.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ListPage<T> {
    /// Newest first, unless the list says otherwise.
    pub items: Vec<T>,
    /// `cursor` of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// True if the search ran out of time before `next`, or if new text is not indexed yet: request `next`, or repeat the
    /// request. `items` may be empty although there are more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
}

impl<T> ListPage<T> {
    /// The rows of a page in their public form.
    pub(crate) fn from_page<R>(page: ResultPage<R>, public: impl FnMut(R) -> T) -> Self {
        Self { items: page.items.into_iter().map(public).collect(), next: page.next, partial: page.partial }
    }

    /// A list that is always whole.
    pub(crate) fn complete(items: Vec<T>) -> Self {
        Self { items, next: None, partial: false }
    }
}
