//! Running tools: a task each, ended by their outcome, stopped by a token.

use crate::media::MediaOffloader;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use throughline_engine::{OfferedTool, ToolAnswer, ToolQuestion, TurnId, TurnInput, TurnLimits};
use throughline_store::hit_failpoint;
use throughline_tools::{QuestionHandler, ToolExecutor, ToolInvocation, ToolRegistry};
use throughline_wire::{CallArguments, CallId, CallOutcome, ToolName};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{Id, JoinSet};
use tokio_util::sync::CancellationToken;

/// Progress reports that may wait to be taken. A tool that reports faster gets its reports joined by the executor.
const REPORTS_MAX: usize = 64;

/// The tools of a turn that are running. Dropping it aborts them.
pub(super) struct RunningTools {
    turn: TurnId,
    executor: ToolExecutor,
    offloader: MediaOffloader,
    timeouts: HashMap<ToolName, Duration>,
    tasks: JoinSet<CallOutcome>,
    running: HashMap<Id, RunningCall>,
    /// Boxed, as commands are: a channel makes room for 32 at its beginning.
    report_rx: mpsc::Receiver<Box<ToolReport>>,
    report_tx: mpsc::Sender<Box<ToolReport>>,
    asked_max: Duration,
    output_bytes_max: usize,
    /// Open questions of tools, by the machine's number.
    pending_answers: HashMap<u64, oneshot::Sender<ToolAnswer>>,
    question_count: u64,
}

/// A report of a running tool.
enum ToolReport {
    Progress(TurnInput),
    Question { call: CallId, attempt: u32, question: ToolQuestion, reply: oneshot::Sender<ToolAnswer> },
}

struct RunningCall {
    call: CallId,
    attempt: u32,
    cancel: CancellationToken,
}

impl RunningTools {
    pub(super) fn new(
        turn: &TurnId,
        offered: &[OfferedTool],
        executor: ToolExecutor,
        limits: &TurnLimits,
        offloader: MediaOffloader,
    ) -> Self {
        let timeout = |tool: &OfferedTool| (tool.name.clone(), Duration::from_millis(tool.timeout_ms));
        let (report_tx, report_rx) = mpsc::channel(REPORTS_MAX);
        Self {
            turn: turn.clone(),
            executor,
            offloader,
            timeouts: offered.iter().map(timeout).collect(),
            tasks: JoinSet::new(),
            running: HashMap::new(),
            report_rx,
            report_tx,
            asked_max: Duration::from_millis(limits.asked_ms_max),
            output_bytes_max: limits.output_bytes_max,
            pending_answers: HashMap::new(),
            question_count: 0,
        }
    }

    pub(super) fn start(
        &mut self,
        registry: Arc<ToolRegistry>,
        call: CallId,
        attempt: u32,
        tool: ToolName,
        arguments: CallArguments,
    ) {
        let cancel = CancellationToken::new();
        let job = ToolInvocation {
            idempotency_key: format!("{}-{call}", self.turn),
            attempt,
            timeout: self.timeouts.get(&tool).copied(),
            output_bytes_max: Some(self.output_bytes_max),
            cancel: cancel.clone(),
            question_handler: self.asker(&call, attempt),
            question_wait_max: self.asked_max,
            ..ToolInvocation::new(call.clone(), tool, arguments)
        };
        let (executor, offloader, report) =
            (self.executor.clone(), self.offloader.clone(), self.report_tx.clone());
        let call_id = call.clone();
        let handle = self.tasks.spawn(async move {
            let on_progress = |progress| {
                let input = TurnInput::ToolProgress { call: call_id.clone(), attempt, progress };
                let report = report.clone();
                async move {
                    // The receiver is closed only when the turn has ended.
                    let _ = report.send(Box::new(ToolReport::Progress(input))).await;
                }
            };
            hit_failpoint("tool_begins");
            let mut outcome = executor.run(&registry, job, on_progress).await;
            offloader.offload_output(&mut outcome).await;
            hit_failpoint("tool_done");
            outcome
        });
        self.running.insert(handle.id(), RunningCall { call, attempt, cancel });
    }

    /// Passes the elicitations of one start to the machine, and waits for its answers.
    fn asker(&self, call: &CallId, attempt: u32) -> QuestionHandler {
        let (report, call) = (self.report_tx.clone(), call.clone());
        QuestionHandler::new(move |question| {
            let (report, call) = (report.clone(), call.clone());
            async move {
                let (reply, answer) = oneshot::channel();
                // After the end of the turn no answer can arrive.
                if report
                    .send(Box::new(ToolReport::Question { call, attempt, question, reply }))
                    .await
                    .is_err()
                {
                    return ToolAnswer::Cancel;
                }
                answer.await.unwrap_or(ToolAnswer::Cancel)
            }
        })
    }

    /// Passes an answer to its tool. A tool that no longer waits needs none.
    pub(super) fn answer(&mut self, question_id: u64, answer: ToolAnswer) {
        if let Some(reply) = self.pending_answers.remove(&question_id) {
            let _ = reply.send(answer);
        }
    }

    /// Requests a tool to stop; its outcome is reported at its end. A tool that is not running has ended
    /// already.
    pub(super) fn cancel(&self, call: &CallId, attempt: u32) {
        for running in self.running.values() {
            if running.call == *call && running.attempt == attempt {
                running.cancel.cancel();
            }
        }
    }

    /// The next report or end; pending while no tool runs.
    pub(super) async fn next(&mut self) -> TurnInput {
        loop {
            let ended = tokio::select! {
                // Reports that came before an end are given before it.
                biased;
                Some(report) = self.report_rx.recv() => match *report {
                    ToolReport::Progress(input) => return input,
                    ToolReport::Question { call, attempt, question, reply } => {
                        self.question_count += 1;
                        let question_id = self.question_count;
                        self.pending_answers.insert(question_id, reply);
                        return TurnInput::ToolQuestionAsked { call, attempt, question_id, question };
                    }
                },
                Some(ended) = self.tasks.join_next_with_id(), if !self.tasks.is_empty() => ended,
            };
            let (id, outcome) = match ended {
                Ok((id, outcome)) => (id, outcome),
                // The tool's own panic is caught by the executor and is a failed call. If the executor itself
                // panics, the effects of the tool are unknown.
                Err(error) => (error.id(), CallOutcome::unknown()),
            };
            if let Some(RunningCall { call, attempt, .. }) = self.running.remove(&id) {
                return TurnInput::ToolEnded { call, attempt, outcome };
            }
        }
    }
}
