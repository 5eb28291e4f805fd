//! Open approval questions at the end of an answer in a chat: they are answered by the next message of the
//! chat, or on the page that a link opens.
//!
//! Single-use codes identify them. Only hashes of the codes are stored, with the turn, the questions and the
//! hashes of the displayed arguments, among the documents of the user. So a code of another user is never
//! found, and a restart changes nothing. The turn itself waits in the log like any other with an open
//! question.

use crate::error::ApiError;
use crate::openai::chat::pending_questions;
use crate::projections::chat_completions::question::{
    self, AnswerCode, CODE_BYTES, CallQuestion, QuestionReply, ends_with_question, last_question, normalized,
};
use crate::request_guard::RandomnessError;
use crate::state::AppState;
use crate::turn_log;
use crate::turn_manager::TurnLookup;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::StatusCode;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use throughline::engine::MessageTiming;
use throughline::{ApprovalOutcome, ApprovalResponse};
use throughline_engine::{ApprovalDecision, ApprovalId, TurnId};
use throughline_store::{
    Catalog, DocumentKind, DocumentPrecondition, NewDocument, PutOutcome, StoredDocument,
};
use throughline_wire::{Message, UserPart};

/// Time for which an expired question, or one that was answered elsewhere, still leads the next message of its chat to
/// the rest of the answer: a day, in milliseconds.
const RETENTION_MS: i64 = 24 * 60 * 60 * 1_000;
/// Questions of one user that are remembered at the same time; over it the oldest is forgotten, and its code is good for nothing.
/// More than a person can have open, and few enough to be read whenever one is added.
const CHAT_QUESTIONS_MAX: usize = 1_000;
/// Path of the page that a link opens.
pub(crate) const LINK_PATH: &str = "/approve";

/// The questions of one answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredQuestions {
    /// Id of the turn with the questions.
    pub turn: String,
    /// The last event that the answer has shown.
    pub after: u64,
    questions: Vec<StoredQuestion>,
    /// The question as it was shown: how long, without white space, and its hash.
    chars: usize,
    text_hash: String,
    /// Hash of the link's code; empty once it was used.
    link_hash: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoredQuestion {
    approval_id: String,
    arguments_hash: String,
}

/// Stored questions with their document.
struct QuestionDocument {
    document: StoredDocument,
    questions: StoredQuestions,
}

/// Stores the questions of an answer, and returns the text that the answer ends with. `page` is the address
/// of this server as the user reaches it.
///
/// # Errors
/// The store cannot be written; then no question is shown.
pub(crate) async fn store_questions(
    state: &AppState,
    user: &str,
    turn: &TurnId,
    after: u64,
    questions: &[CallQuestion],
    page: &str,
) -> Result<String, ApiError> {
    let (code, link_code) = (new_answer_code()?, new_answer_code()?);
    let (name, user_code) = (code.hash(), URL_SAFE_NO_PAD.encode(user));
    // The name finds the document without reading any other; it is a hash and no credential.
    let link = format!("{page}{LINK_PATH}#{user_code}.{name}.{}", link_code.reveal());
    let text = question::question_text(questions, &link, &code);
    let shown = normalized(&text);
    let stored = StoredQuestions {
        turn: turn.as_str().to_owned(),
        after,
        questions: questions
            .iter()
            .map(|question| StoredQuestion {
                approval_id: question.approval_id.clone(),
                arguments_hash: question.arguments_hash.clone(),
            })
            .collect(),
        chars: shown.chars().count(),
        text_hash: blake3::hash(shown.as_bytes()).to_hex().to_string(),
        link_hash: link_code.hash(),
    };
    evict_outdated(state, user).await?;
    write_questions(state, user, name, &stored, DocumentPrecondition::Absent).await?;
    Ok(text)
}

fn new_answer_code() -> Result<AnswerCode, ApiError> {
    let mut random = [0; CODE_BYTES];
    getrandom::fill(&mut random).map_err(|_| ApiError::internal(RandomnessError))?;
    Ok(AnswerCode::of(random))
}

async fn write_questions(
    state: &AppState,
    user: &str,
    name: String,
    stored: &StoredQuestions,
    expect: DocumentPrecondition,
) -> Result<bool, ApiError> {
    let body = serde_json::to_value(stored).map_err(ApiError::internal)?;
    let now = Timestamp::now().as_millisecond();
    let document = NewDocument { kind: DocumentKind::ChatQuestion, name, body, precondition: expect, now };
    Ok(matches!(state.catalog.put_document(user, document).await?, PutOutcome::Written(_)))
}

/// Deletes questions that are too old, and the oldest above the limit.
async fn evict_outdated(state: &AppState, user: &str) -> Result<(), ApiError> {
    let documents = state.catalog.documents(user, DocumentKind::ChatQuestion).await?;
    let created = documents.iter().map(|document| (document.created_at, document.name.as_str())).collect();
    for name in outdated(created, Timestamp::now().as_millisecond()) {
        state.catalog.remove_document(user, DocumentKind::ChatQuestion, name).await?;
    }
    Ok(())
}

/// Names of those from before yesterday and, if one more would be too many, of the oldest.
fn outdated(mut created: Vec<(i64, &str)>, now: i64) -> Vec<&str> {
    created.sort_unstable_by(|one, other| other.cmp(one));
    let retained = created.iter().take(CHAT_QUESTIONS_MAX - 1);
    let retained =
        retained.take_while(|(created_at, _)| now.saturating_sub(*created_at) <= RETENTION_MS).count();
    created.into_iter().skip(retained).map(|(_, name)| name).collect()
}

/// The questions with this name, if any.
async fn find_stored(state: &AppState, user: &str, name: &str) -> Result<Option<QuestionDocument>, ApiError> {
    let document = state.catalog.document(user, DocumentKind::ChatQuestion, name).await?;
    Ok(document.and_then(|document| {
        let stored = serde_json::from_value(document.body.clone()).ok()?;
        Some(QuestionDocument { document, questions: stored })
    }))
}

/// The questions at the end of this history's last answer, if they belong to this user, are unchanged, and
/// have not been answered.
///
/// # Errors
/// The store cannot be read.
pub(crate) async fn find_open(
    state: &AppState,
    user: &str,
    history: &[Message],
) -> Result<Option<OpenQuestions>, ApiError> {
    let Some((code, text)) = last_question(history) else { return Ok(None) };
    let name = code.hash();
    let candidate = find_stored(state, user, &name).await?;
    let candidate =
        candidate.filter(|entry| ends_with_question(text, entry.questions.chars, &entry.questions.text_hash));
    Ok(candidate.map(|entry| OpenQuestions { name, questions: entry.questions }))
}

/// The questions that an unfinished turn of a conversation has asked in a chat: there, an answer needs no
/// history.
///
/// # Errors
/// The store cannot be read.
pub(crate) async fn find_in_conversation(
    state: &AppState,
    user: &str,
    conversation: &str,
) -> Result<Option<OpenQuestions>, ApiError> {
    let summary = state.catalog.conversation(user, conversation).await?;
    let Some(turn) = summary.and_then(|summary| summary.running_turn_id) else { return Ok(None) };
    let mut documents = state.catalog.documents(user, DocumentKind::ChatQuestion).await?;
    documents.retain(|document| document.body["turn"] == turn);
    let newest = documents.into_iter().max_by_key(|document| document.created_at);
    Ok(newest.and_then(|document| {
        let questions = serde_json::from_value(document.body).ok()?;
        Some(OpenQuestions { name: document.name, questions })
    }))
}

/// Questions that wait for an answer.
pub(crate) struct OpenQuestions {
    name: String,
    questions: StoredQuestions,
}

impl OpenQuestions {
    /// Id of the turn with the questions.
    pub(crate) fn turn(&self) -> TurnId {
        TurnId::new(self.questions.turn.as_str())
    }

    /// The last event that the answer has shown.
    pub(crate) fn after(&self) -> u64 {
        self.questions.after
    }

    /// Uses their code up. `None`: another request was first.
    ///
    /// # Errors
    /// The store cannot be written.
    pub(crate) async fn claim(
        self,
        state: &AppState,
        user: &str,
    ) -> Result<Option<StoredQuestions>, ApiError> {
        let taken = state.catalog.remove_document(user, DocumentKind::ChatQuestion, &self.name).await?;
        Ok(taken.map(|_| self.questions))
    }
}

/// User and questions of the link with this code.
async fn find_by_link(state: &AppState, link: &str) -> Result<(String, QuestionDocument), ApiError> {
    let link_expired = || {
        ApiError::gone("link_used", "question not found: it was answered or has expired")
            .remedy("the chat shows the outcome with its next message")
    };
    let [user, name, code] = link.split('.').collect::<Vec<_>>()[..] else { return Err(link_expired()) };
    let user = URL_SAFE_NO_PAD.decode(user).ok().and_then(|user| String::from_utf8(user).ok());
    let (user, code) = user.zip(AnswerCode::read(code)).ok_or_else(link_expired)?;
    let candidate =
        find_stored(state, &user, name).await?.filter(|entry| entry.questions.link_hash == code.hash());
    candidate.map(|entry| (user, entry)).ok_or_else(link_expired)
}

/// Questions of a link.
///
/// # Errors
/// 410 if the link was used or its questions are answered. The store cannot be read.
pub(crate) async fn questions_of_link(state: &AppState, link: &str) -> Result<Vec<CallQuestion>, ApiError> {
    let (_, entry) = find_by_link(state, link).await?;
    let mut questions = pending_questions(state, &TurnId::new(entry.questions.turn.as_str())).await?;
    questions.retain(|question| entry.questions.contains(question));
    if questions.is_empty() {
        return Err(ApiError::gone("question_closed", "the question was answered or has expired"));
    }
    Ok(questions)
}

/// Answers the questions of a link. The link is used up; the chat continues with its next message.
///
/// # Errors
/// 410: it was used before, or the turn has ended. 503: another server runs the turn, or this one is
/// starting; the link stays valid.
pub(crate) async fn answer_link(
    state: &AppState,
    link: &str,
    decision: ApprovalDecision,
    reason: Option<String>,
) -> Result<(), ApiError> {
    let (user, QuestionDocument { document, mut questions }) = find_by_link(state, link).await?;
    // Before the link is used up.
    match state.turn_manager.lookup(&user, &TurnId::new(questions.turn.as_str())).await {
        Err(error) if error.status != StatusCode::NOT_FOUND => return Err(error),
        Ok(TurnLookup::NotRunning) => {
            return Err(turn_log::not_running(&TurnId::new(questions.turn.as_str())));
        }
        Ok(_) | Err(_) => {}
    }
    questions.link_hash.clear();
    if !write_questions(
        state,
        &user,
        document.name,
        &questions,
        DocumentPrecondition::Version(document.version),
    )
    .await?
    {
        return Err(ApiError::gone("link_used", "this link has just been used"));
    }
    match questions.decide(state, &user, decision, reason).await? {
        AnswerEffect::Applied => Ok(()),
        AnswerEffect::None => {
            Err(ApiError::gone("question_closed", "the question was answered or has expired"))
        }
    }
}

/// True if a turn waits for an answer to questions that it has asked in a chat.
pub(crate) async fn is_pending_in_chat(catalog: &dyn Catalog, user: &str, turn: &TurnId) -> bool {
    let documents = catalog.documents(user, DocumentKind::ChatQuestion).await.unwrap_or_default();
    documents.iter().any(|document| document.body["turn"] == turn.as_str())
}

/// Effect of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerEffect {
    /// At least one question was answered.
    Applied,
    /// All questions had been answered before, or had expired.
    None,
}

impl StoredQuestions {
    fn contains(&self, question: &CallQuestion) -> bool {
        self.questions.iter().any(|entry| {
            entry.approval_id == question.approval_id && entry.arguments_hash == question.arguments_hash
        })
    }

    /// Answers all of them, for the arguments that were shown and no others.
    async fn decide(
        &self,
        state: &AppState,
        user: &str,
        decision: ApprovalDecision,
        reason: Option<String>,
    ) -> Result<AnswerEffect, ApiError> {
        let turn = TurnId::new(self.turn.as_str());
        let TurnLookup::Running(control) = state.turn_manager.lookup(user, &turn).await? else {
            return Ok(AnswerEffect::None);
        };
        let mut effect = AnswerEffect::None;
        for StoredQuestion { approval_id, arguments_hash } in &self.questions {
            let mut answer = ApprovalResponse::from_decision(decision, reason.clone());
            answer.arguments_hash = Some(arguments_hash.clone());
            let decided = control.decide_as(ApprovalId::new(approval_id.as_str()), answer, user).await;
            if matches!(decided, ApprovalOutcome::Resolved) {
                effect = AnswerEffect::Applied;
            }
        }
        Ok(effect)
    }

    /// Answers the questions with the user's message in the chat. A message that comes too late for an answer
    /// is sent to the turn.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) async fn answer(
        &self,
        state: &AppState,
        user: &str,
        parts: &[UserPart],
    ) -> Result<(), ApiError> {
        // The user may quote the question in the answer.
        let mut parts = parts.to_vec();
        question::strip_codes_in(&mut parts);
        let parts = &parts[..];
        let (decision, reason) = match question::read_reply(parts) {
            QuestionReply::Plain(decision) => (decision, None),
            QuestionReply::Words(words) => (ApprovalDecision::Deny, Some(words)),
        };
        // A picture is not a reason: it is sent to the turn in addition to the denial.
        let is_text = parts.iter().all(|part| matches!(part, UserPart::Text { .. }));
        if !is_text {
            self.send_to_turn(state, user, parts).await;
        }
        let has_reason = reason.is_some();
        let effect = self.decide(state, user, decision, reason.filter(|_| is_text)).await?;
        if effect == AnswerEffect::None && has_reason && is_text {
            self.send_to_turn(state, user, parts).await;
        }
        Ok(())
    }

    async fn send_to_turn(&self, state: &AppState, user: &str, parts: &[UserPart]) {
        let turn = TurnId::new(self.turn.as_str());
        if let Ok(TurnLookup::Running(control)) = state.turn_manager.lookup(user, &turn).await {
            // If the turn has ended by now, its answer reports that.
            let _ = control.send(parts.to_vec(), MessageTiming::NextStep).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_beyond_count_or_age_limit_are_outdated() {
        let now = 2 * RETENTION_MS;
        let names: Vec<String> = (0..CHAT_QUESTIONS_MAX).map(|at| at.to_string()).collect();
        let created: Vec<_> = (now..).zip(names.iter().map(String::as_str)).collect();
        assert_eq!(outdated(created.clone(), now), ["0"]);
        assert!(outdated(created[1..].to_vec(), now).is_empty());
        assert_eq!(
            outdated(vec![(now - RETENTION_MS, "young"), (now - RETENTION_MS - 1, "old")], now),
            ["old"]
        );
    }
}
