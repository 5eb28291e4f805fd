//! Commands within the chat: lines that begin with `/`.

/// What a line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A message for the model.
    Message(String),
    /// The list of commands.
    Help,
    /// The tools offered.
    Tools,
    /// Another model, or which one it is.
    Model(Option<String>),
    /// Another mode, or which one it is.
    Mode(Option<String>),
    /// A picture for the next message; none = the usage.
    Image(Option<String>),
    /// Reasoning in full, or folded.
    Thinking,
    /// Where tools come from, and what is wrong there.
    Sources,
    /// A message for after the running turn; none = the usage.
    After(Option<String>),
    /// Leave.
    Quit,
    /// No such command.
    Unknown,
}

/// Names that Tab completes to.
pub const NAMES: [&str; 9] =
    ["/help", "/tools", "/sources", "/model", "/mode", "/image", "/after", "/thinking", "/quit"];

/// Reads a line. `//` begins a message with a slash; a path such as `/etc/hosts` is no command either.
pub fn parse(line: &str) -> Line {
    let line = line.trim();
    if let Some(escaped) = line.strip_prefix('/').filter(|rest| rest.starts_with('/')) {
        return Line::Message(escaped.to_owned());
    }
    if !line.starts_with('/') {
        return Line::Message(line.to_owned());
    }
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let argument = Some(rest.trim()).filter(|rest| !rest.is_empty()).map(str::to_owned);
    match name {
        "/help" | "/?" => Line::Help,
        "/tools" => Line::Tools,
        "/sources" => Line::Sources,
        "/after" => Line::After(argument),
        "/model" => Line::Model(argument),
        "/mode" => Line::Mode(argument),
        "/image" => Line::Image(argument),
        "/thinking" => Line::Thinking,
        "/quit" | "/exit" | "/q" => Line::Quit,
        path if path[1..].contains('/') => Line::Message(line.to_owned()),
        _ => Line::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_messages_or_commands() {
        for (line, expect) in [
            ("hello", Line::Message("hello".into())),
            ("  hello ", Line::Message("hello".into())),
            ("//etc is a path", Line::Message("/etc is a path".into())),
            ("/etc/hosts what is it?", Line::Message("/etc/hosts what is it?".into())),
            ("/help", Line::Help),
            ("/model", Line::Model(None)),
            ("/model  a/b ", Line::Model(Some("a/b".into()))),
            ("/mode native", Line::Mode(Some("native".into()))),
            ("/image ./a picture.png", Line::Image(Some("./a picture.png".into()))),
            ("/image", Line::Image(None)),
            ("/after and then sum it up", Line::After(Some("and then sum it up".into()))),
            ("/sources", Line::Sources),
            ("/thinking", Line::Thinking),
            ("/q", Line::Quit),
            ("/nonsense", Line::Unknown),
        ] {
            assert_eq!(parse(line), expect, "{line}");
        }
    }

    #[test]
    fn every_completion_is_a_command() {
        for name in NAMES {
            assert!(!matches!(parse(name), Line::Message(_) | Line::Unknown), "{name}");
        }
    }
}
