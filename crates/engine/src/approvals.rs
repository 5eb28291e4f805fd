//! Questions to people about calls, and what the answers are bound to. R: A2, A3, A4
//!
//! An answer holds for one call of ours, for the arguments that were shown and for the definition of the tool that was
//! asked about. If one of them changes, it answers nothing any more and the call asks again: [`Answer::is_about`] is
//! looked at right before the start. Nothing that a model or upstream can choose is a key.
//!
//! [`Answer::is_about`]: crate::record::Answer::is_about

use crate::action::Action;
use crate::canonical;
use crate::diff;
use crate::event::{Decision, EventKind, QuestionKind};
use crate::id::ApprovalId;
use crate::input::{Question, TimerId, Verdict};
use crate::policy::{self, Case, Confirm, Remember, Remembered, Ruling};
use crate::record::CallState;
use crate::setup::OfferedTool;
use crate::turn::{Check, Machine, PendingEdit, Subject};
use crate::wording;
use throughline_wire::{Arguments, CallId, Outcome, Started, ToolName, visible};

/// What somebody answers.
pub(crate) struct Spoken {
    pub decision: Decision,
    pub by: String,
    pub reason: Option<String>,
    pub arguments_hash: Option<String>,
    pub arguments: Option<serde_json::Value>,
    pub remember: Option<Remember>,
}

impl Spoken {
    /// No, without a person's doing.
    pub(crate) fn no(by: &str, reason: Option<String>) -> Self {
        Self::plain(Decision::Deny, by, reason)
    }

    fn plain(decision: Decision, by: &str, reason: Option<String>) -> Self {
        Self { decision, by: by.into(), reason, arguments_hash: None, arguments: None, remember: None }
    }
}

impl Machine<'_> {
    // --- what is decided about ---

    /// A call as policy sees it; nothing, if there is no tool or nothing to run it with.
    pub(crate) fn case(&self, at: usize) -> Option<Case<'_>> {
        let tool = self.tool_of(at)?;
        let arguments = self.record.calls[at].effective()?;
        Some(Case { tool, fingerprint: self.record.fingerprint_of(tool), arguments })
    }

    /// What rules and memory say.
    pub(crate) fn ruling(&self, case: &Case<'_>) -> Ruling {
        let remembered = self.setup.remembered.iter().chain(&self.record.remembered);
        policy::ruling(case, &self.setup.policy, remembered)
    }

    // --- asking ---

    pub(crate) fn ask(&mut self, at: usize, rule: String, question: String) {
        let Some(case) = self.case(at) else { return };
        let (fingerprint, arguments_hash) =
            (case.fingerprint.to_owned(), canonical::arguments_hash(case.arguments));
        let arguments_text = visible::json(&case.arguments.value);
        let call = &self.record.calls[at];
        let approval_id = ApprovalId::new(format!("{}.a{}", call.id, call.questions + 1));
        // R: T3: who wants to see every call is not hurried.
        let limit =
            self.setup.limits.approval_ms_max.filter(|_| self.setup.policy.confirm != Confirm::Manual);
        let expires_at = limit.map(|ms| self.now.saturating_add_unsigned(ms));
        let request = EventKind::ApprovalRequest {
            approval_id: approval_id.clone(),
            kind: QuestionKind::Call,
            question,
            rule,
            expires_at,
            arguments_text: Some(arguments_text),
            arguments_hash,
            fingerprint,
            schema: None,
            url: None,
        };
        self.emit(self.about_call(at), request);
        if let Some(at) = expires_at {
            self.timer_at(TimerId::Approval(approval_id), at);
        }
    }

    // --- answers ---

    pub(crate) fn answered(&mut self, question: &Question, said: &Spoken) {
        let asked: Vec<usize> = (0..self.record.calls.len())
            .filter(|at| match (&self.record.calls[*at].state, question) {
                (CallState::Asked { approval, .. }, Question::One(id)) => approval == id,
                (CallState::Asked { .. }, Question::All) => true,
                _ => false,
            })
            .collect();
        for at in asked {
            // Arguments for all calls would be the wrong ones for most.
            if said.arguments.is_some() && *question == Question::All {
                self.complain(at, "invalid_edit", wording::edit_of_all());
                continue;
            }
            self.answer(at, said);
        }
    }

    fn answer(&mut self, at: usize, said: &Spoken) {
        let CallState::Asked { approval, arguments_hash, .. } = &self.record.calls[at].state else { return };
        if said.arguments_hash.as_ref().is_some_and(|hash| hash != arguments_hash) {
            self.complain(at, "stale_answer", wording::stale_answer());
            return;
        }
        let approval = approval.clone();
        let edited = said.arguments.as_ref().filter(|_| said.decision == Decision::Approve);
        let shown = self.record.calls[at].effective().map(|shown| &shown.value);
        match edited.filter(|edited| shown != Some(*edited)) {
            Some(edited) => self.check_edit(at, approval, Arguments::from_value(edited.clone()), said),
            None => self.resolve(at, said, None),
        }
    }

    /// Changed arguments are checked like those of a model before they count.
    fn check_edit(&mut self, at: usize, approval: ApprovalId, arguments: Arguments, said: &Spoken) {
        let Some(case) = self.case(at) else { return };
        if let Ruling::Deny { reason, .. } = self.ruling(&Case { arguments: &arguments, ..case }) {
            self.complain(at, "invalid_edit", reason);
            return;
        }
        let edit = PendingEdit {
            approval,
            arguments: arguments.clone(),
            by: said.by.clone(),
            reason: said.reason.clone(),
            remember: said.remember.clone(),
        };
        self.check(at, arguments, Subject::Edit(Box::new(edit)));
    }

    /// Asks for a check of arguments.
    pub(crate) fn check(&mut self, at: usize, arguments: Arguments, subject: Subject) {
        let (Some(tool), call) = (self.tool_of(at), &self.record.calls[at]) else { return };
        let (tool, call) = (tool.name.clone(), call.id.clone());
        let version = self.live.checks_asked;
        self.live.checks_asked += 1;
        let check = Check { version, subject, verdict: None };
        match check.subject {
            Subject::Arguments(_) => self.live.checks.insert(call.clone(), check),
            Subject::Edit(_) => self.live.edits.insert(call.clone(), check),
        };
        self.act(Action::Validate { call, version, tool, arguments });
    }

    pub(crate) fn validated(&mut self, call: &CallId, version: u32, verdict: Verdict) {
        if let Some(check) = self.live.checks.get_mut(call)
            && check.version == version
        {
            check.verdict.get_or_insert(verdict);
            return;
        }
        if self.live.edits.get(call).is_none_or(|check| check.version != version) {
            return;
        }
        let Some(Check { subject: Subject::Edit(edit), .. }) = self.live.edits.remove(call) else { return };
        // Somebody else may have answered meanwhile, or time has.
        let is_open = |at: &usize| match &self.record.calls[*at].state {
            CallState::Asked { approval, .. } => *approval == edit.approval,
            _ => false,
        };
        let Some(at) = self.record.call(call).filter(is_open) else { return };
        match verdict {
            Verdict::Valid => {
                let mut said = Spoken::plain(Decision::Approve, &edit.by, edit.reason);
                said.remember = edit.remember;
                self.resolve(at, &said, Some(edit.arguments));
            }
            Verdict::Invalid { message } => self.complain(at, "invalid_edit", message),
        }
    }

    /// Records an answer; a denial closes the call in the same breath.
    pub(crate) fn resolve(&mut self, at: usize, said: &Spoken, edited: Option<Arguments>) {
        let CallState::Asked { approval, .. } = &self.record.calls[at].state else { return };
        let approval_id = approval.clone();
        let Spoken { decision, by, reason, .. } = said;
        let remembered = said.remember.as_ref().and_then(|remember| self.keep(at, remember, said, &edited));
        if let Some(Err(why)) = &remembered {
            self.complain(at, "not_remembered", why.clone());
        }
        let remembered = remembered.and_then(Result::ok).flatten();
        let written = self.record.calls[at].written().map(|arguments| &arguments.value);
        let arguments_diff = match (&edited, written) {
            (Some(edited), Some(written)) => Some(diff::changes(written, &edited.value)),
            _ => None,
        };
        let is_edited = edited.is_some();
        let resolved = EventKind::ApprovalResolved {
            approval_id,
            decision: *decision,
            by: by.clone(),
            reason: reason.clone(),
            arguments: edited.map(|edited| edited.value),
            arguments_diff,
            remember: match (&remembered, &said.remember) {
                (Some(remembered), _) => Some(remembered.scope.name().to_owned()),
                (None, Some(remember)) if remember.scope == policy::Scope::Call => Some("call".to_owned()),
                (None, _) => None,
            },
            remembered: remembered.clone().map(Box::new),
            answer: None,
            content: None,
        };
        self.emit(self.about_call(at), resolved);
        if is_edited {
            // It has just been checked.
            let call = &self.record.calls[at];
            let check = Check {
                version: self.live.checks_asked,
                subject: Subject::Arguments(call.version),
                verdict: Some(Verdict::Valid),
            };
            self.live.checks_asked += 1;
            self.live.checks.insert(call.id.clone(), check);
        }
        if *decision == Decision::Deny && !matches!(by.as_str(), "stop" | "cancel") {
            self.close(at, Outcome::Denied { reason: reason.clone() });
        }
        if remembered.is_some() {
            self.answer_from_memory();
        }
    }

    /// What is to be kept of an answer; why not, if it cannot be.
    fn keep(
        &self,
        at: usize,
        remember: &Remember,
        said: &Spoken,
        edited: &Option<Arguments>,
    ) -> Option<Result<Option<Remembered>, String>> {
        let case = self.case(at)?;
        let case = Case { arguments: edited.as_ref().unwrap_or(case.arguments), ..case };
        let kept = Remembered::of(remember, &case, said.decision, said.reason.as_deref());
        let rule = self.record.calls[at].rule.as_deref().unwrap_or_default();
        Some(match kept {
            Some(_) if said.decision == Decision::Approve && !policy::may_be_remembered(rule) => {
                Err(wording::asks_each_time(rule))
            }
            Some(kept) if !kept.fits(&case) => Err(wording::constraints_do_not_fit()),
            kept => Ok(kept),
        })
    }

    /// Questions that are open and that what was just remembered answers.
    fn answer_from_memory(&mut self) {
        for at in 0..self.record.calls.len() {
            if !matches!(self.record.calls[at].state, CallState::Asked { .. }) {
                continue;
            }
            let Some(case) = self.case(at) else { continue };
            let circles = self.record.calls[at].rule.as_deref() == Some(policy::name::LOOP_GUARD);
            let said = match self.ruling(&case) {
                Ruling::Allow { .. } if !circles => Spoken::plain(Decision::Approve, "remembered", None),
                Ruling::Deny { reason, .. } => Spoken::no("remembered", Some(reason)),
                Ruling::Allow { .. } | Ruling::Ask { .. } => continue,
            };
            self.resolve(at, &said, None);
        }
    }

    pub(crate) fn question_expired(&mut self, approval: &ApprovalId) {
        let reason = Some(wording::expired(self.setup.limits.approval_ms_max));
        self.answered(&Question::One(approval.clone()), &Spoken::no("timer", reason));
    }

    /// Tells people what is wrong with an answer; the question stays open.
    fn complain(&mut self, at: usize, code: &str, why: String) {
        let remedy = Some(wording::answer_again().to_owned());
        let problem = EventKind::Problem { code: code.into(), at: None, excerpt: why, remedy };
        self.emit(self.about_call(at), problem);
    }

    // --- tools that change meanwhile ---

    /// A tool is no longer what it was when it was offered: what was said about it answers nothing any more, and
    /// `start` was not made.
    pub(crate) fn redefined(&mut self, tool: &ToolName, fingerprint: &str, start: Option<(CallId, u32)>) {
        let is_meant = |offered: &OfferedTool| offered.name == *tool;
        let Some(place) = self.setup.tools.iter().position(is_meant) else { return };
        let start = start.and_then(|(call, attempt)| Some((self.running(&call, attempt)?, attempt)));
        if start.is_none() && self.record.fingerprint_of(&self.setup.tools[place]) == fingerprint {
            return;
        }
        let concerned: Vec<usize> = (0..self.record.calls.len())
            .filter(|at| {
                let call = &self.record.calls[*at];
                let waits = matches!(call.state, CallState::Sealed | CallState::Asked { .. });
                let starts = start.is_some_and(|(starting, _)| starting == *at);
                call.tool == Some(place) && !call.hosted && (waits || starts)
            })
            .collect();
        let event = |attempt| EventKind::ToolRedefined {
            tool_name: tool.clone(),
            fingerprint: fingerprint.to_owned(),
            attempt,
        };
        if concerned.is_empty() {
            self.emit(self.about_step(), event(None));
        }
        for at in concerned {
            let attempt = start.filter(|(starting, _)| *starting == at).map(|(_, attempt)| attempt);
            self.emit(self.about_call(at), event(attempt));
            let id = self.record.calls[at].id.clone();
            self.live.edits.remove(&id);
            match attempt {
                // It was to be stopped, and never began.
                Some(attempt) if self.live.cancelled_starts.contains(&(id, attempt)) => {
                    self.close(at, Outcome::Cancelled(Started::No));
                }
                // The schema may be another one.
                _ => self.sealed(at),
            }
        }
    }
}
