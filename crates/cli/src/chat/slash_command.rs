//! Commands within the chat: lines that begin with `/`.

/// Command on a line that starts with `/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SlashCommand {
    /// A message for the model.
    Message(String),
    /// The list of commands.
    Help,
    /// The tools offered.
    Tools,
    /// Sets the model, or shows it.
    Model(Option<String>),
    /// Sets the mode, or shows it.
    Mode(Option<String>),
    /// A picture for the next message; none = the usage.
    Image(Option<String>),
    /// Reasoning in full, or folded.
    Thinking,
    /// List the tool sources and their problems.
    Sources,
    /// A message for after the running turn; none = the usage.
    After(Option<String>),
    /// A new conversation.
    New,
    /// Opens another conversation, or lists them.
    Resume(Option<String>),
    /// The last message once more.
    Retry,
    /// The conversation into a file; none = the usage.
    Save(Option<String>),
    /// The last answer to the clipboard.
    Copy,
    /// Sets the agent, or lists the agents.
    Agent(Option<String>),
    /// Sets the instructions, or shows them; `-` removes them.
    System(Option<String>),
    /// Leave.
    Quit,
    /// Unknown command.
    Unknown,
}

/// Names that Tab completes to.
pub(crate) const COMMAND_NAMES: [&str; 16] = [
    "/help",
    "/new",
    "/resume",
    "/retry",
    "/save",
    "/copy",
    "/agent",
    "/model",
    "/system",
    "/mode",
    "/tools",
    "/sources",
    "/image",
    "/after",
    "/thinking",
    "/quit",
];

/// Reads a line. `//` begins a message with a slash; a path such as `/etc/hosts` is no command either.
pub(crate) fn parse(line: &str) -> SlashCommand {
    let line = line.trim();
    if let Some(escaped) = line.strip_prefix('/').filter(|rest| rest.starts_with('/')) {
        return SlashCommand::Message(escaped.to_owned());
    }
    if !line.starts_with('/') {
        return SlashCommand::Message(line.to_owned());
    }
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let argument = Some(rest.trim()).filter(|rest| !rest.is_empty()).map(str::to_owned);
    match name {
        "/help" | "/?" => SlashCommand::Help,
        "/tools" => SlashCommand::Tools,
        "/sources" => SlashCommand::Sources,
        "/after" => SlashCommand::After(argument),
        "/model" => SlashCommand::Model(argument),
        "/mode" => SlashCommand::Mode(argument),
        "/image" => SlashCommand::Image(argument),
        "/thinking" => SlashCommand::Thinking,
        "/new" | "/clear" => SlashCommand::New,
        "/resume" => SlashCommand::Resume(argument),
        "/retry" => SlashCommand::Retry,
        "/save" => SlashCommand::Save(argument),
        "/copy" => SlashCommand::Copy,
        "/agent" => SlashCommand::Agent(argument),
        "/system" => SlashCommand::System(argument),
        "/quit" | "/exit" | "/q" => SlashCommand::Quit,
        path if path[1..].contains('/') => SlashCommand::Message(line.to_owned()),
        _ => SlashCommand::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_parse_as_messages_or_commands() {
        for (line, expect) in [
            ("hello", SlashCommand::Message("hello".into())),
            ("  hello ", SlashCommand::Message("hello".into())),
            ("//etc is a path", SlashCommand::Message("/etc is a path".into())),
            ("/etc/hosts what is it?", SlashCommand::Message("/etc/hosts what is it?".into())),
            ("/help", SlashCommand::Help),
            ("/model", SlashCommand::Model(None)),
            ("/model  a/b ", SlashCommand::Model(Some("a/b".into()))),
            ("/mode native", SlashCommand::Mode(Some("native".into()))),
            ("/image ./a picture.png", SlashCommand::Image(Some("./a picture.png".into()))),
            ("/image", SlashCommand::Image(None)),
            ("/after and then sum it up", SlashCommand::After(Some("and then sum it up".into()))),
            ("/sources", SlashCommand::Sources),
            ("/thinking", SlashCommand::Thinking),
            ("/new", SlashCommand::New),
            ("/resume 2", SlashCommand::Resume(Some("2".into()))),
            ("/retry", SlashCommand::Retry),
            ("/save talk.md", SlashCommand::Save(Some("talk.md".into()))),
            ("/copy", SlashCommand::Copy),
            ("/agent clerk", SlashCommand::Agent(Some("clerk".into()))),
            ("/system Be brief.", SlashCommand::System(Some("Be brief.".into()))),
            ("/q", SlashCommand::Quit),
            ("/nonsense", SlashCommand::Unknown),
        ] {
            assert_eq!(parse(line), expect, "{line}");
        }
    }

    #[test]
    fn every_completion_is_a_command() {
        for name in COMMAND_NAMES {
            assert!(!matches!(parse(name), SlashCommand::Message(_) | SlashCommand::Unknown), "{name}");
        }
    }
}
