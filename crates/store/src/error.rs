//! Errors of a store.

/// Error of a store. Nothing of a refused change has been written.
///
/// A row that is absent, or belongs to another user, is not an error: the method returns `None` or the like.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A value that cannot be stored or searched for.
    #[error("`{field}` is invalid: {why}")]
    Invalid {
        /// Name of the field.
        field: &'static str,
        why: String,
    },
    /// An item with this id exists already.
    #[error("there is already a {what} with this id")]
    Exists { what: &'static str },
    /// A limit would be crossed.
    #[error("exceeds the limit {limit} of {max}")]
    OverLimit {
        /// Name of the limit.
        limit: &'static str,
        /// Value of the limit.
        max: u64,
    },
    /// Too many requests at the same time, or the request takes too long. A retry a little later may succeed.
    #[error("exceeds the limit {limit} of {max}")]
    Busy {
        /// Name of the limit.
        limit: &'static str,
        /// Value of the limit.
        max: u64,
    },
    /// The disk is full. Stored data can be read.
    #[error("the disk is full: {why}")]
    DiskFull { why: String },
    /// The store accepts no changes at the moment. Stored data can be read.
    #[error("the store is read-only: {why}")]
    ReadOnly { why: String },
    /// The data on the disk is damaged.
    #[error("the store is damaged: {why}")]
    Corrupt { why: String },
    /// The store has failed or violated its contract.
    #[error("the store failed: {why}")]
    Failed { why: String },
}

impl StoreError {
    /// Makes an [`Invalid`](Self::Invalid) error.
    pub fn invalid(field: &'static str, why: impl Into<String>) -> Self {
        Self::Invalid { field, why: why.into() }
    }

    /// Makes a [`Failed`](Self::Failed) error.
    pub fn failed(why: impl ToString) -> Self {
        Self::Failed { why: why.to_string() }
    }
}
