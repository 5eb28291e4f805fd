//! Results of asynchronous plugins: they arrive after their call has ended, are stored as files, and replace
//! `{{VCP_ASYNC_RESULT::Plugin::id}}` where a model or a prompt wrote it.

use crate::source_hook::{CALLBACK_PATH, CallbackError, SourceCallback};
use regex::Regex;
use serde_json::Value;
use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};
use throughline_wire::{Message, ModelRequest};

/// Most bytes of one result.
pub const RESULT_BYTES_MAX: usize = 256 * 1024;
/// Most results that are stored; the oldest go.
pub const RESULTS_MAX: usize = 1_000;
/// Most bytes of a result in a request; more is cut off.
pub const RESULT_SHOWN_BYTES_MAX: usize = 16 * 1024;
/// Most placeholders that one request has filled.
pub const PLACEHOLDERS_FILLED_MAX: usize = 50;
/// Longest id of a task.
const TASK_BYTES_MAX: usize = 128;

/// Also with three or four braces, which models write.
static PLACEHOLDER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"\{{2,4}VCP_ASYNC_RESULT::([A-Za-z0-9_.-]{1,128})::([A-Za-z0-9_-]{1,128})\}{2,4}").ok()
});

/// Proof that a sender was started by this program. One for all sources: a program may work on while its source is
/// replaced.
static TOKEN: LazyLock<String> = LazyLock::new(|| {
    // The keys of a `RandomState` are the system's randomness.
    let random = [RandomState::new().hash_one(1), RandomState::new().hash_one(2)];
    format!("{:016x}{:016x}", random[0], random[1])
});

/// The results in their folder.
pub(super) struct AsyncResults {
    folder: PathBuf,
    /// Address of the server.
    base: Mutex<Option<String>>,
}

impl AsyncResults {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, base: Mutex::default() }
    }

    pub(super) fn set_base(&self, base: &str) {
        *self.base.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(base.trim_end_matches('/').to_owned());
    }

    /// Value of `CALLBACK_BASE_URL`, to which a plugin appends its name and the task.
    pub(super) fn callback_url(&self) -> Option<String> {
        let base = self.base.lock().unwrap_or_else(PoisonError::into_inner);
        base.as_ref().map(|base| format!("{base}{CALLBACK_PATH}/{}", *TOKEN))
    }

    /// True for a token that this program has issued. Compared as hashes, so that timing reveals nothing.
    pub(super) fn is_token(&self, token: &str) -> bool {
        blake3::hash(token.as_bytes()) == blake3::hash(TOKEN.as_bytes())
    }

    /// Stores a result. Blocks.
    pub(super) fn store(&self, callback: &SourceCallback) -> Result<(), CallbackError> {
        if callback.body.len() > RESULT_BYTES_MAX {
            return Err(CallbackError::TooLarge { bytes_max: RESULT_BYTES_MAX });
        }
        if !serde_json::from_slice::<Value>(&callback.body).is_ok_and(|body| body.is_object()) {
            return Err(CallbackError::NotJson);
        }
        let path = self.path(&callback.plugin, &callback.task).ok_or(CallbackError::UnknownTask)?;
        let not_stored = |error: std::io::Error| CallbackError::NotStored { why: error.to_string() };
        std::fs::create_dir_all(&self.folder).map_err(not_stored)?;
        let mut file = tempfile::NamedTempFile::new_in(&self.folder).map_err(not_stored)?;
        file.write_all(&callback.body).map_err(not_stored)?;
        file.persist(path).map_err(|error| not_stored(error.error))?;
        self.prune();
        Ok(())
    }

    fn path(&self, plugin: &str, task: &str) -> Option<PathBuf> {
        let is_task = |text: &str| {
            !text.is_empty()
                && text.len() <= TASK_BYTES_MAX
                && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
        };
        (is_plugin_name(plugin) && is_task(task)).then(|| self.folder.join(format!("{plugin}-{task}.json")))
    }

    /// Removes old results; other files of the folder are not ours.
    fn prune(&self) {
        let Ok(entries) = std::fs::read_dir(&self.folder) else { return };
        let mut results: Vec<_> = entries
            .filter_map(Result::ok)
            .filter(|entry| entry.path().extension().is_some_and(|extension| extension == "json"))
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        if results.len() > RESULTS_MAX {
            results.sort();
            for (_, path) in &results[..results.len() - RESULTS_MAX] {
                // The file may have been removed already.
                let _ = std::fs::remove_file(path);
            }
        }
    }

    /// True if there is anything to fill.
    pub(super) fn is_named_in(request: &ModelRequest) -> bool {
        let named = |text: &str| text.contains("VCP_ASYNC_RESULT::");
        let in_steps = request
            .messages
            .iter()
            .any(|message| matches!(message, Message::Step(step) if named(&step.text)));
        in_steps || request.instructions.as_deref().is_some_and(named)
    }

    /// Fills the placeholders in texts of the model and the operator. Texts of users and outputs of tools are
    /// left alone: they could read other results. Blocks.
    pub(super) fn fill(&self, request: &mut ModelRequest) {
        let mut left = PLACEHOLDERS_FILLED_MAX;
        if let Some(instructions) = &mut request.instructions {
            self.fill_text(instructions, &mut left);
        }
        for message in &mut request.messages {
            if let Message::Step(step) = message {
                self.fill_text(&mut step.text, &mut left);
            }
        }
    }

    fn fill_text(&self, text: &mut String, left: &mut usize) {
        let Some(pattern) = PLACEHOLDER.as_ref().filter(|_| text.contains("VCP_ASYNC_RESULT")) else {
            return;
        };
        let filled = pattern.replace_all(text, |captures: &regex::Captures<'_>| {
            if *left == 0 {
                return captures[0].to_owned();
            }
            *left -= 1;
            self.result_text(&captures[1], &captures[2])
        });
        if let Cow::Owned(filled) = filled {
            *text = filled;
        }
    }

    fn result_text(&self, plugin: &str, task: &str) -> String {
        let Some(path) = self.path(plugin, task) else {
            return format!("[{plugin} cannot have a task {task}]");
        };
        match read_result(&path) {
            Ok(Some(result)) => cut(&describe(plugin, task, &result)),
            Ok(None) => format!("[the result of {plugin} ({task}) is not there yet]"),
            Err(why) => format!("[the result of {plugin} ({task}) cannot be read: {why}]"),
        }
    }
}

/// Also the name of a file.
pub(super) fn is_plugin_name(name: &str) -> bool {
    let is_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    !name.is_empty() && name.len() <= TASK_BYTES_MAX && !name.starts_with('.') && name.chars().all(is_char)
}

/// Reads a result; `None` = there is none.
fn read_result(path: &Path) -> Result<Option<Value>, String> {
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
        Ok(metadata) if metadata.len() > RESULT_BYTES_MAX as u64 => return Err("it is too large".to_owned()),
        Ok(_) => {}
    }
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    serde_json::from_slice(&bytes).map(Some).map_err(|error| error.to_string())
}

/// The plugin's own message, or the state and the data.
fn describe(plugin: &str, task: &str, result: &Value) -> String {
    if let Some(message) = result["message"].as_str().filter(|message| !message.is_empty()) {
        return message.to_owned();
    }
    let first = |keys: &[&str]| {
        let found = keys.iter().map(|key| &result[*key]).find(|value| !value.is_null());
        let value = found.unwrap_or(result);
        value.as_str().map_or_else(|| value.to_string(), str::to_owned)
    };
    match result["status"].as_str() {
        Some("Failed") => format!("task {task} of {plugin} failed: {}", first(&["reason", "data", "error"])),
        _ => format!("task {task} of {plugin} has finished: {}", first(&["data", "result"])),
    }
}

fn cut(text: &str) -> String {
    if text.len() <= RESULT_SHOWN_BYTES_MAX {
        return text.to_owned();
    }
    format!("{}\n[cut off]", &text[..text.floor_char_boundary(RESULT_SHOWN_BYTES_MAX)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use throughline_wire::{ClosedStep, UserPart};

    fn callback(task: &str, body: &Value) -> SourceCallback {
        SourceCallback {
            token: String::new(),
            plugin: "Video".to_owned(),
            task: task.to_owned(),
            body: body.to_string().into_bytes(),
        }
    }

    #[test]
    fn async_result_fills_its_placeholder_except_in_user_text() {
        let folder = tempfile::tempdir().unwrap();
        let results = AsyncResults::new(folder.path().join("results"));
        results.store(&callback("a1", &json!({"message": "see film.mp4"}))).unwrap();
        results.store(&callback("a2", &json!({"status": "Succeed", "data": {"url": "u"}}))).unwrap();
        results.store(&callback("a3", &json!({"status": "Failed", "reason": "no money"}))).unwrap();
        let written = "{{VCP_ASYNC_RESULT::Video::a1}} {{{VCP_ASYNC_RESULT::Video::a2}}} \
            {{VCP_ASYNC_RESULT::Video::a3}} {{VCP_ASYNC_RESULT::Video::a4}} {{VCP_ASYNC_RESULT::../x::a}}";
        let user = Message::User(vec![UserPart::Text { text: written.to_owned() }]);
        let step = ClosedStep { text: written.to_owned(), ..ClosedStep::default() };
        let messages = vec![user.clone(), Message::Step(step)];
        let mut request = ModelRequest { messages, ..ModelRequest::default() };
        results.fill(&mut request);
        assert_eq!(request.messages[0], user, "who asks cannot read the results of others");
        let Message::Step(step) = &request.messages[1] else { panic!() };
        assert_eq!(
            step.text,
            "see film.mp4 task a2 of Video has finished: {\"url\":\"u\"} task a3 of Video failed: no money \
            [the result of Video (a4) is not there yet] {{VCP_ASYNC_RESULT::../x::a}}"
        );
    }

    #[test]
    fn invalid_async_results_are_refused_and_count_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let results = AsyncResults::new(folder.path().to_owned());
        assert_eq!(results.store(&callback("../a", &json!({}))), Err(CallbackError::UnknownTask));
        assert_eq!(results.store(&callback("a", &json!([]))), Err(CallbackError::NotJson));
        let large = json!({"message": "x".repeat(RESULT_BYTES_MAX)});
        assert_eq!(
            results.store(&callback("a", &large)),
            Err(CallbackError::TooLarge { bytes_max: RESULT_BYTES_MAX })
        );
        for number in 0..RESULTS_MAX + 5 {
            std::fs::write(folder.path().join(format!("Video-{number}.json")), "{}").unwrap();
        }
        std::fs::write(folder.path().join("notes.txt"), "mine").unwrap();
        results.store(&callback("last", &json!({"message": "here"}))).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), RESULTS_MAX + 1);
        assert_eq!(results.result_text("Video", "last"), "here");
    }

    #[test]
    fn filled_placeholders_and_result_text_are_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let results = AsyncResults::new(folder.path().to_owned());
        let long = "x".repeat(RESULT_SHOWN_BYTES_MAX + 1);
        results.store(&callback("long", &json!({ "message": long }))).unwrap();
        assert!(results.result_text("Video", "long").ends_with("x\n[cut off]"));
        let many = "{{VCP_ASYNC_RESULT::Video::none}}".repeat(PLACEHOLDERS_FILLED_MAX + 1);
        let mut request = ModelRequest { instructions: Some(many), ..ModelRequest::default() };
        results.fill(&mut request);
        assert_eq!(request.instructions.unwrap().matches("VCP_ASYNC_RESULT").count(), 1);
    }

    #[test]
    fn callback_url_contains_the_token() {
        let results = AsyncResults::new("/x".into());
        assert!(results.is_token(&TOKEN) && !results.is_token("") && TOKEN.len() == 32);
        assert_eq!(results.callback_url(), None, "without a server nothing can call back");
        results.set_base("http://127.0.0.1:8080/");
        assert_eq!(results.callback_url(), Some(format!("http://127.0.0.1:8080/plugin-callback/{}", *TOKEN)));
    }
}
