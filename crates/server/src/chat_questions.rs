//! Questions that an answer in a chat window has ended with, until they are answered: by the next message of the chat, or on
//! the page that a link opens. // R: A3, A4
//!
//! What opens them are codes of one use, of which only hashes are kept, with the turn, the questions and the hashes of the
//! arguments that were shown, among the documents of the user; so nobody else's code is ever found, and a restart changes
//! nothing. The turn itself waits in the log like any other that asks.

use crate::compat::chat::questions_of;
use crate::error::ApiError;
use crate::gate::NoRandomness;
use crate::hub::Standing;
use crate::state::AppState;
use crate::surface::chat_completions::question::{
    self, AnswerCode, CODE_BYTES, CallQuestion, Reply, asked_last, compared, ends_with_question,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use throughline::engine::When;
use throughline::{Answer, Decided};
use throughline_engine::{ApprovalId, Decision, TurnId};
use throughline_store::Catalog;
use throughline_store::catalog::{Document, DocumentKind, Expect, NewDocument, Put};
use throughline_wire::{Message, UserPart};

/// How long a question that was answered elsewhere, or whose time was over, leads the next message of its chat to the rest of
/// the answer: a day, in milliseconds.
const KEPT_MS: i64 = 24 * 60 * 60 * 1_000;
/// Questions of one user that are remembered at the same time; over it the oldest is forgotten, and its code is good for nothing.
/// More than a person can have open, and few enough to be read whenever one is added.
const CHAT_QUESTIONS_MAX: usize = 1_000;
/// Where the page of a link is.
pub const LINK_PATH: &str = "/approve";

/// The questions of one answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// Which turn asks.
    pub turn: String,
    /// The last event that the answer has shown.
    pub after: u64,
    questions: Vec<Question>,
    /// The question as it was shown: how long, without white space, and its hash.
    chars: usize,
    text_hash: String,
    /// Of the link's code; empty once it was used.
    link_hash: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Question {
    approval_id: String,
    arguments_hash: String,
}

/// A question and where it is kept.
struct Kept {
    document: Document,
    asked: Asked,
}

/// Keeps the questions of an answer, and gives the text that it ends with. `page` is the address of this server as the person
/// knows it.
///
/// # Errors
/// The store does not take them; then nothing was asked.
pub async fn keep(
    state: &AppState,
    user: &str,
    turn: &TurnId,
    after: u64,
    questions: &[CallQuestion],
    page: &str,
) -> Result<String, ApiError> {
    let (code, link_code) = (mint()?, mint()?);
    let (name, whose) = (code.hash(), URL_SAFE_NO_PAD.encode(user));
    // The name finds the question without reading any other; it is a hash and opens nothing by itself.
    let link = format!("{page}{LINK_PATH}#{whose}.{name}.{}", link_code.reveal());
    let text = question::text(questions, &link, &code);
    let shown = compared(&text);
    let asked = Asked {
        turn: turn.as_str().to_owned(),
        after,
        questions: questions
            .iter()
            .map(|question| Question {
                approval_id: question.approval_id.clone(),
                arguments_hash: question.arguments_hash.clone(),
            })
            .collect(),
        chars: shown.chars().count(),
        text_hash: blake3::hash(shown.as_bytes()).to_hex().to_string(),
        link_hash: link_code.hash(),
    };
    make_room(state, user).await?;
    put(state, user, name, &asked, Expect::Absent).await?;
    Ok(text)
}

fn mint() -> Result<AnswerCode, ApiError> {
    let mut random = [0; CODE_BYTES];
    getrandom::fill(&mut random).map_err(|_| ApiError::internal(NoRandomness))?;
    Ok(AnswerCode::of(random))
}

async fn put(
    state: &AppState,
    user: &str,
    name: String,
    asked: &Asked,
    expect: Expect,
) -> Result<bool, ApiError> {
    let body = serde_json::to_value(asked).map_err(ApiError::internal)?;
    let now = Timestamp::now().as_millisecond();
    let document = NewDocument { kind: DocumentKind::ChatQuestion, name, body, expect, now };
    Ok(matches!(state.catalog.put_document(user, document).await?, Put::Done(_)))
}

/// Forgets questions that are too old and those that are too many.
async fn make_room(state: &AppState, user: &str) -> Result<(), ApiError> {
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
    let stay = created.iter().take(CHAT_QUESTIONS_MAX - 1);
    let stay = stay.take_while(|(created_at, _)| now.saturating_sub(*created_at) <= KEPT_MS).count();
    created.into_iter().skip(stay).map(|(_, name)| name).collect()
}

/// The questions with this name, if there are any.
async fn named(state: &AppState, user: &str, name: &str) -> Result<Option<Kept>, ApiError> {
    let document = state.catalog.document(user, DocumentKind::ChatQuestion, name).await?;
    Ok(document.and_then(|document| {
        let asked = serde_json::from_value(document.body.clone()).ok()?;
        Some(Kept { document, asked })
    }))
}

/// The questions that the last answer of this history ended with, if they are this user's, unchanged, and nobody has taken
/// them before.
///
/// # Errors
/// The store cannot be read.
pub async fn find(state: &AppState, user: &str, history: &[Message]) -> Result<Option<Open>, ApiError> {
    let Some((code, text)) = asked_last(history) else { return Ok(None) };
    let name = code.hash();
    let found = named(state, user, &name).await?;
    let found = found.filter(|kept| ends_with_question(text, kept.asked.chars, &kept.asked.text_hash));
    Ok(found.map(|kept| Open { name, asked: kept.asked }))
}

/// Questions that wait for an answer.
pub struct Open {
    name: String,
    asked: Asked,
}

impl Open {
    /// Which turn asks.
    pub fn turn(&self) -> TurnId {
        TurnId::new(self.asked.turn.as_str())
    }

    /// Uses their code up. `None`: another request was first.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn take(self, state: &AppState, user: &str) -> Result<Option<Asked>, ApiError> {
        let taken = state.catalog.remove_document(user, DocumentKind::ChatQuestion, &self.name).await?;
        Ok(taken.map(|_| self.asked))
    }
}

/// Who is asked by the link with this behind its `#`, and what.
async fn by_link(state: &AppState, link: &str) -> Result<(String, Kept), ApiError> {
    let gone = || {
        ApiError::gone("link_used", "this link leads to no question: it was answered, or its time is over")
            .remedy("what became of it is said in the chat, with its next message")
    };
    let [user, name, code] = link.split('.').collect::<Vec<_>>()[..] else { return Err(gone()) };
    let user = URL_SAFE_NO_PAD.decode(user).ok().and_then(|user| String::from_utf8(user).ok());
    let (user, code) = user.zip(AnswerCode::read(code)).ok_or_else(gone)?;
    let found = named(state, &user, name).await?.filter(|kept| kept.asked.link_hash == code.hash());
    found.map(|kept| (user, kept)).ok_or_else(gone)
}

/// What a link asks.
///
/// # Errors
/// 410: it was used, or its questions are answered. The store cannot be read.
pub async fn look(state: &AppState, link: &str) -> Result<Vec<CallQuestion>, ApiError> {
    let (_, kept) = by_link(state, link).await?;
    let mut questions = questions_of(state, &TurnId::new(kept.asked.turn.as_str())).await?;
    questions.retain(|question| kept.asked.asks(question));
    if questions.is_empty() {
        return Err(ApiError::gone("question_closed", "the question is answered, or its time is over"));
    }
    Ok(questions)
}

/// Answers what a link asks. The link is used up by that; the chat goes on with its next message.
///
/// # Errors
/// 410: it was used before, or the turn is over.
pub async fn answer_link(
    state: &AppState,
    link: &str,
    decision: Decision,
    reason: Option<String>,
) -> Result<(), ApiError> {
    let (user, Kept { document, mut asked }) = by_link(state, link).await?;
    asked.link_hash.clear();
    if !put(state, &user, document.name, &asked, Expect::Version(document.version)).await? {
        return Err(ApiError::gone("link_used", "this link has just been used"));
    }
    match asked.decide(state, &user, decision, reason).await? {
        Took::Effect => Ok(()),
        Took::None => Err(ApiError::gone("question_closed", "the question is answered, or its time is over")),
    }
}

/// Whether a turn has asked in a chat and nobody has answered there.
pub(crate) async fn is_asked_in_a_chat(catalog: &dyn Catalog, user: &str, turn: &TurnId) -> bool {
    let documents = catalog.documents(user, DocumentKind::ChatQuestion).await.unwrap_or_default();
    documents.iter().any(|document| document.body["turn"] == turn.as_str())
}

/// Whether an answer was the one that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Took {
    /// It was, of one question at least.
    Effect,
    /// All had been answered before, or were over.
    None,
}

impl Asked {
    fn asks(&self, question: &CallQuestion) -> bool {
        self.questions.iter().any(|kept| {
            kept.approval_id == question.approval_id && kept.arguments_hash == question.arguments_hash
        })
    }

    /// Answers all of them, for the arguments that were shown and no others.
    async fn decide(
        &self,
        state: &AppState,
        user: &str,
        decision: Decision,
        reason: Option<String>,
    ) -> Result<Took, ApiError> {
        let turn = TurnId::new(self.turn.as_str());
        let Standing::Running(control) = state.hub.control(user, &turn).await? else { return Ok(Took::None) };
        let mut took = Took::None;
        for Question { approval_id, arguments_hash } in &self.questions {
            let mut answer = Answer::plain(decision, reason.clone());
            answer.arguments_hash = Some(arguments_hash.clone());
            let decided = control.decide_as(ApprovalId::new(approval_id.as_str()), answer, user).await;
            if matches!(decided, Decided::Resolved) {
                took = Took::Effect;
            }
        }
        Ok(took)
    }

    /// Answers them with what the user says in the chat. What comes too late for an answer is said to the turn.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn answer(&self, state: &AppState, user: &str, said: &[UserPart]) -> Result<(), ApiError> {
        let (decision, reason) = match question::reply(said) {
            Reply::Plain(decision) => (decision, None),
            Reply::Words(words) => (Decision::Deny, Some(words)),
        };
        // A picture is no reason: it is taken in beside the denial.
        let is_text = said.iter().all(|part| matches!(part, UserPart::Text { .. }));
        if !is_text {
            self.say(state, user, said).await;
        }
        let has_words = reason.is_some();
        let took = self.decide(state, user, decision, reason.filter(|_| is_text)).await?;
        if took == Took::None && has_words && is_text {
            self.say(state, user, said).await;
        }
        Ok(())
    }

    async fn say(&self, state: &AppState, user: &str, said: &[UserPart]) {
        let turn = TurnId::new(self.turn.as_str());
        if let Ok(Standing::Running(control)) = state.hub.control(user, &turn).await {
            // If the turn has ended meanwhile, its answer says so.
            let _ = control.say(said.to_vec(), When::NextStep).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // R: A3
    #[test]
    fn of_too_many_questions_the_oldest_are_forgotten() {
        let now = 2 * KEPT_MS;
        let names: Vec<String> = (0..CHAT_QUESTIONS_MAX).map(|at| at.to_string()).collect();
        let created: Vec<_> = (now..).zip(names.iter().map(String::as_str)).collect();
        assert_eq!(outdated(created.clone(), now), ["0"]);
        assert!(outdated(created[1..].to_vec(), now).is_empty());
        assert_eq!(outdated(vec![(now - KEPT_MS, "young"), (now - KEPT_MS - 1, "old")], now), ["old"]);
    }
}
