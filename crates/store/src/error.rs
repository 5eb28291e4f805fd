//! Errors of a store.

/// Error of a store. Nothing of a refused change has been written.
///
/// A row that is absent, or belongs to another user, is no error: it is `None` or the like.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A value that cannot be stored or searched for.
    #[error("`{field}` is not usable: {why}")]
    Invalid {
        /// Name of the field.
        field: &'static str,
        why: String,
    },
    /// Something with this id is there already.
    #[error("there is already a {what} with this id")]
    Exists { what: &'static str },
    /// A limit would be crossed.
    #[error("over the limit {limit} of {max}")]
    OverLimit {
        /// Name of the limit.
        limit: &'static str,
        /// Its value.
        max: u64,
    },
    /// Too much of it is asked for at the same time, or it takes too long. The same may be answered a little later.
    #[error("over the limit {limit} of {max}")]
    Busy {
        /// Name of the limit.
        limit: &'static str,
        /// Its value.
        max: u64,
    },
    /// There is no room on the disk. What is stored can be read.
    #[error("the disk is full: {why}")]
    DiskFull { why: String },
    /// The store takes no changes at the moment. What is stored can be read.
    #[error("the store is read-only: {why}")]
    ReadOnly { why: String },
    /// The data on the disk is damaged.
    #[error("the store is damaged: {why}")]
    Corrupt { why: String },
    /// The store is gone, or did something that it must not.
    #[error("the store failed: {why}")]
    Failed { why: String },
}

impl StoreError {
    /// An [`Invalid`](Self::Invalid) value.
    pub fn invalid(field: &'static str, why: impl Into<String>) -> Self {
        Self::Invalid { field, why: why.into() }
    }

    /// The store failed.
    pub fn failed(why: impl ToString) -> Self {
        Self::Failed { why: why.to_string() }
    }
}
