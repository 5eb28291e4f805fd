//! What became of something that was said to a running turn, answered when its log has it. R: A3

/// What became of the answer to a question. Over HTTP: 200, 202, 200, 409, 410, 422, 404, 410.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "somebody else may have answered, or time has"]
pub enum Decided {
    /// It is the answer, and in the log.
    Resolved,
    /// The question has not been asked yet; it will be answered with this as soon as it is.
    Queued,
    /// The same had been answered before.
    SameAlready,
    /// Something else had been answered before.
    DifferentAlready,
    /// The question is no longer open, and nobody answered it: its time was over, or its call went away.
    Expired,
    /// What was filled in or changed does not fit, or the call is another one by now; the question is still open.
    DoesNotFit {
        /// What, and where.
        message: String,
    },
    /// The turn has not asked such a question.
    Unknown,
    /// The turn is over.
    TurnIsOver,
}

/// What became of the wish to stop one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "the call may have ended before"]
pub enum CallCancelled {
    /// It ends now, or as soon as its tool has said how it ended.
    Yes,
    /// It had an outcome before.
    Ended,
    /// The turn has no such call.
    Unknown,
    /// The turn is over.
    TurnIsOver,
}
