//! One turn: its request, its start, the handle of its owner, and the commands that reach it while it runs. A
//! conversation is several of them.

mod answer;
mod append_lag;
mod command;
mod conversation;
mod durable;
mod handle;
mod hooks;
mod request;
mod start;
mod steering_queue;
mod stored;

pub use answer::{AnswerError, AnswerSchema};
pub(crate) use append_lag::AppendLag;
pub use command::{
    CancelCallResult, ClientAnswerResult, CommandAck, RetractResult, SendResult, ToolAnswerResult,
};
pub(crate) use command::{CommandSender, TurnCommand};
pub use conversation::Conversation;
pub use durable::ResumedTurns;
pub use handle::{TurnControl, TurnHandle};
pub use hooks::{TurnHooks, TurnResult};
pub use request::{FirstCall, PersonaMode, TurnRequest, UserInput};
pub(crate) use steering_queue::SteeringQueue;
pub use stored::{HistorySource, PreparedTurn, STORED_TURN_VERSION, StoredTurn};
