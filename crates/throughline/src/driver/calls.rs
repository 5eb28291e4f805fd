//! Running tools: a task each, ended by their outcome, stopped by a token.

use crate::media::Shelf;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use throughline_engine::{Input, OfferedTool, ToolAnswer, ToolQuestion, TurnId, TurnLimits};
use throughline_store::failpoint;
use throughline_tools::{Asker, Executor, Registry, ToolCall};
use throughline_wire::{Arguments, CallId, Outcome, ToolName};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{Id, JoinSet};
use tokio_util::sync::CancellationToken;

/// Progress reports that may wait to be taken. A tool that reports faster gets its reports joined by the executor.
const REPORTS_MAX: usize = 64;

/// The tools of a turn that are running. Dropping it aborts them.
pub(super) struct RunningTools {
    turn: TurnId,
    executor: Executor,
    shelf: Shelf,
    timeouts: HashMap<ToolName, Duration>,
    tasks: JoinSet<Outcome>,
    running: HashMap<Id, Running>,
    /// Boxed, as commands are: a channel makes room for 32 at its beginning.
    reports: mpsc::Receiver<Box<Report>>,
    report: mpsc::Sender<Box<Report>>,
    asked_max: Duration,
    /// Questions that tools have asked, by the number that the machine knows.
    asked: HashMap<u64, oneshot::Sender<ToolAnswer>>,
    questions: u64,
}

/// What a running tool says.
enum Report {
    Progress(Input),
    Asks { call: CallId, attempt: u32, question: ToolQuestion, reply: oneshot::Sender<ToolAnswer> },
}

struct Running {
    call: CallId,
    attempt: u32,
    cancel: CancellationToken,
}

impl RunningTools {
    pub(super) fn new(
        turn: &TurnId,
        offered: &[OfferedTool],
        executor: Executor,
        limits: &TurnLimits,
        shelf: Shelf,
    ) -> Self {
        let timeout = |tool: &OfferedTool| (tool.name.clone(), Duration::from_millis(tool.timeout_ms));
        let (report, reports) = mpsc::channel(REPORTS_MAX);
        Self {
            turn: turn.clone(),
            executor,
            shelf,
            timeouts: offered.iter().map(timeout).collect(),
            tasks: JoinSet::new(),
            running: HashMap::new(),
            reports,
            report,
            asked_max: Duration::from_millis(limits.asked_ms_max),
            asked: HashMap::new(),
            questions: 0,
        }
    }

    pub(super) fn start(
        &mut self,
        registry: Arc<Registry>,
        call: CallId,
        attempt: u32,
        tool: ToolName,
        arguments: Arguments,
    ) {
        let cancel = CancellationToken::new();
        let job = ToolCall {
            idempotency_key: format!("{}-{call}", self.turn),
            attempt,
            timeout: self.timeouts.get(&tool).copied(),
            cancel: cancel.clone(),
            asker: self.asker(&call, attempt),
            asked_max: self.asked_max,
            ..ToolCall::new(call.clone(), tool, arguments)
        };
        let (executor, shelf, report) = (self.executor.clone(), self.shelf.clone(), self.report.clone());
        let reported = call.clone();
        let handle = self.tasks.spawn(async move {
            let on_progress = |progress| {
                let input = Input::ToolProgress { call: reported.clone(), attempt, progress };
                let report = report.clone();
                async move {
                    // Nobody listens only when the turn is gone.
                    let _ = report.send(Box::new(Report::Progress(input))).await;
                }
            };
            failpoint::reach("tool_begins");
            let mut outcome = executor.run(&registry, job, on_progress).await;
            shelf.put_away_output(&mut outcome).await;
            failpoint::reach("tool_done");
            outcome
        });
        self.running.insert(handle.id(), Running { call, attempt, cancel });
    }

    /// Puts the questions of one start to the machine, and waits for what it answers.
    fn asker(&self, call: &CallId, attempt: u32) -> Asker {
        let (report, call) = (self.report.clone(), call.clone());
        Asker::new(move |question| {
            let (report, call) = (report.clone(), call.clone());
            async move {
                let (reply, answer) = oneshot::channel();
                // If the turn is gone, so is whoever would answer.
                if report.send(Box::new(Report::Asks { call, attempt, question, reply })).await.is_err() {
                    return ToolAnswer::Cancel;
                }
                answer.await.unwrap_or(ToolAnswer::Cancel)
            }
        })
    }

    /// Gives a tool its answer. One that no longer waits needs none.
    pub(super) fn answer(&mut self, question_id: u64, answer: ToolAnswer) {
        if let Some(reply) = self.asked.remove(&question_id) {
            let _ = reply.send(answer);
        }
    }

    /// Asks a tool to stop; how it ended comes as its end. One that is not running has ended already.
    pub(super) fn cancel(&self, call: &CallId, attempt: u32) {
        for running in self.running.values() {
            if running.call == *call && running.attempt == attempt {
                running.cancel.cancel();
            }
        }
    }

    /// The next report or end; never, if nothing runs.
    pub(super) async fn next(&mut self) -> Input {
        loop {
            let ended = tokio::select! {
                // Reports that came before an end are given before it.
                biased;
                Some(report) = self.reports.recv() => match *report {
                    Report::Progress(input) => return input,
                    Report::Asks { call, attempt, question, reply } => {
                        self.questions += 1;
                        let question_id = self.questions;
                        self.asked.insert(question_id, reply);
                        return Input::ToolAsks { call, attempt, question_id, question };
                    }
                },
                Some(ended) = self.tasks.join_next_with_id(), if !self.tasks.is_empty() => ended,
            };
            let (id, outcome) = match ended {
                Ok((id, outcome)) => (id, outcome),
                // The tool's own panic is caught by the executor and is a failed call. If the executor itself breaks,
                // nobody knows what the tool has done.
                Err(error) => (error.id(), Outcome::Unknown),
            };
            if let Some(Running { call, attempt, .. }) = self.running.remove(&id) {
                return Input::ToolEnded { call, attempt, outcome };
            }
        }
    }
}
