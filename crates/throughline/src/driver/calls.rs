//! Running tools: a task each, ended by their outcome, stopped by a token.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use throughline_engine::{Input, OfferedTool, TurnId};
use throughline_tools::{Executor, Registry, ToolCall};
use throughline_wire::{Arguments, CallId, Outcome, ToolName};
use tokio::sync::mpsc;
use tokio::task::{Id, JoinSet};
use tokio_util::sync::CancellationToken;

/// Progress reports that may wait to be taken. A tool that reports faster gets its reports joined by the executor.
const REPORTS_MAX: usize = 64;

/// The tools of a turn that are running. Dropping it aborts them.
pub(super) struct RunningTools {
    turn: TurnId,
    executor: Executor,
    timeouts: HashMap<ToolName, Duration>,
    tasks: JoinSet<Outcome>,
    running: HashMap<Id, Running>,
    reports: mpsc::Receiver<Input>,
    report: mpsc::Sender<Input>,
}

struct Running {
    call: CallId,
    attempt: u32,
    cancel: CancellationToken,
}

impl RunningTools {
    pub(super) fn new(turn: &TurnId, offered: &[OfferedTool], executor: Executor) -> Self {
        let timeout = |tool: &OfferedTool| (tool.name.clone(), Duration::from_millis(tool.timeout_ms));
        let (report, reports) = mpsc::channel(REPORTS_MAX);
        Self {
            turn: turn.clone(),
            executor,
            timeouts: offered.iter().map(timeout).collect(),
            tasks: JoinSet::new(),
            running: HashMap::new(),
            reports,
            report,
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
            ..ToolCall::new(call.clone(), tool, arguments)
        };
        let (executor, report) = (self.executor.clone(), self.report.clone());
        let reported = call.clone();
        let handle = self.tasks.spawn(async move {
            let on_progress = |progress| {
                let input = Input::ToolProgress { call: reported.clone(), attempt, progress };
                let report = report.clone();
                async move {
                    // Nobody listens only when the turn is gone.
                    let _ = report.send(input).await;
                }
            };
            executor.run(&registry, job, on_progress).await
        });
        self.running.insert(handle.id(), Running { call, attempt, cancel });
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
                Some(report) = self.reports.recv() => return report,
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
