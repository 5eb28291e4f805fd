//! One streaming model call without the loop: the caller reads it, runs the tools and makes the next call.

use super::{CallTime, ModelHandoff, ModelItem, UpstreamClient};
use crate::app::Throughline;
use crate::clock::TurnClock;
use crate::error::Error;
use crate::media::MediaOffloader;
use crate::observe::ObservedCall;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use throughline_engine::{FailureKind, UpstreamFailure};
use throughline_wire::text_calls::CallFormat;
use throughline_wire::{ModelReply, ModelRequest, StepEvent, StreamEnd};

/// A reply as it streams: text, thinking, calls in pieces and sealed, usage. Dropping it closes the connection.
pub struct ModelStream {
    handoff: ModelHandoff,
    /// `None` = it has ended.
    call: Option<BoxFuture<'static, ()>>,
    waiting: VecDeque<StepEvent<'static>>,
    reply: ModelReply,
}

impl fmt::Debug for ModelStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelStream").field("reply", &self.reply).finish_non_exhaustive()
    }
}

impl Throughline {
    /// Calls a model once, without running tools, retries, approval or log: the primitive of a turn. The
    /// request's `model` is `upstream/model`, or a model's name alone if there is one upstream.
    ///
    /// ```
    /// # use throughline_testkit as testkit;
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// # use throughline::{Throughline, Upstream, wire::Dialect};
    /// use throughline::wire::{Message, ModelRequest, StepEvent, UserPart};
    /// # let server = testkit::FakeUpstream::start(testkit::ScriptQueue::new([
    /// #     testkit::ModelScript::new().say("Hello."),
    /// # ])).await?;
    /// # let upstream = Upstream::new("demo", Dialect::OpenaiChat, &server.base_url(testkit::FakeDialect::OpenaiChat))?;
    /// # let app = Throughline::builder().upstream(upstream).model("demo").build()?;
    ///
    /// let request = ModelRequest {
    ///     model: "demo".to_owned(),
    ///     messages: vec![Message::User(vec![UserPart::Text { text: "Hi".to_owned() }])],
    ///     ..ModelRequest::default()
    /// };
    /// let mut stream = app.stream_model(request)?;
    /// while let Some(event) = stream.next().await {
    ///     match event? {
    ///         StepEvent::Text(text) => print!("{text}"),
    ///         StepEvent::CallSealed { arguments, .. } => println!("{}", arguments.text),
    ///         _ => {}
    ///     }
    /// }
    /// assert_eq!(stream.reply().text, "Hello.");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The upstream does not exist. Later failures are returned by [`ModelStream::next`].
    pub fn stream_model(&self, mut request: ModelRequest) -> Result<ModelStream, Error> {
        let plan = self.plan();
        let choice = plan.model_choice(&request.model)?;
        let client = plan.clients(std::slice::from_ref(&choice))?.remove(0);
        request.model = choice.model;
        Ok(ModelStream::new(client, request))
    }
}

impl ModelStream {
    fn new(client: Arc<UpstreamClient>, request: ModelRequest) -> Self {
        let handoff = ModelHandoff::default();
        let out = handoff.clone();
        let call = async move {
            let (clock, offloader) = (TurnClock::start(), MediaOffloader::default());
            let time = CallTime { clock: &clock, deadline: client.deadline() };
            let watch = ObservedCall::unobserved();
            client.call(request.into(), &CallFormat::Native, time, watch, &offloader, &out).await;
        };
        Self { handoff, call: Some(call.boxed()), waiting: VecDeque::new(), reply: ModelReply::default() }
    }

    /// The next event; `None` after the last. The connection is made when this is called first. Dropping the future loses
    /// nothing.
    ///
    /// # Errors
    /// The call failed: the upstream cannot be reached, refuses, or is too slow. Nothing follows.
    pub async fn next(&mut self) -> Option<Result<StepEvent<'static>, UpstreamFailure>> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                self.reply.apply(event.clone());
                return Some(Ok(event));
            }
            match self.handoff.next_from(&mut self.call).await? {
                ModelItem::Events(events) => self.waiting.extend(events),
                ModelItem::Failed(failure) => {
                    self.call = None;
                    return Some(Err(failure));
                }
            }
        }
    }

    /// The reply as far as it has been read.
    pub fn reply(&self) -> &ModelReply {
        &self.reply
    }

    /// Reads to the end and returns the whole reply.
    ///
    /// # Errors
    /// As in [`next`](Self::next), and a reply that broke off or ended in an error.
    pub async fn finish(mut self) -> Result<ModelReply, UpstreamFailure> {
        while let Some(event) = self.next().await {
            event?;
        }
        let message = match &self.reply.end {
            Some(StreamEnd::Complete) => return Ok(self.reply),
            Some(StreamEnd::Error(error)) => error.message.clone(),
            _ => "the reply ended early".to_owned(),
        };
        Err(UpstreamFailure { kind: FailureKind::Broken, status: None, message, retry_after_ms: None })
    }
}
