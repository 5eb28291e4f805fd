//! How it is written down: comments, and types on one line or several, as Biome would with the width of `web/biome.json`.

/// Columns of a line.
pub const WIDTH: usize = 110;

/// A type, so far as its layout needs to know it.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// Words that stay together.
    Word(String),
    /// `{ … }`, a field a line; without fields it is a record of nothing.
    Fields(Vec<Field>),
    /// `T[]`
    List(Box<Type>),
    /// `[A, B, ...C[]]`
    Tuple(Vec<Type>, Option<Box<Type>>),
    /// `Record<string, T>`
    Record(Box<Type>),
    /// `A | B`
    Union(Vec<Type>),
    /// `A & B`
    Both(Vec<Type>),
}

/// A field of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// As it is written: with quotes, brackets and question mark.
    pub name: String,
    pub about: Option<String>,
    pub is: Type,
}

impl Type {
    pub fn word(text: impl Into<String>) -> Self {
        Self::Word(text.into())
    }

    /// `A | B`, flat and with each member once.
    pub fn union(members: impl IntoIterator<Item = Type>) -> Self {
        let mut flat: Vec<Type> = Vec::new();
        for member in members {
            let inner = if let Type::Union(inner) = member { inner } else { vec![member] };
            for one in inner {
                if !flat.contains(&one) {
                    flat.push(one);
                }
            }
        }
        // `unknown` takes in everything.
        if flat.contains(&Type::word("unknown")) {
            return Type::word("unknown");
        }
        flat.retain(|one| *one != Type::word("never"));
        match flat.len() {
            0 => Type::word("never"),
            1 => flat.remove(0),
            _ => Type::Union(flat),
        }
    }

    /// `A & B`, without what adds nothing.
    pub fn both(members: impl IntoIterator<Item = Type>) -> Self {
        let mut flat: Vec<Type> = Vec::new();
        for member in members {
            let inner = if let Type::Both(inner) = member { inner } else { vec![member] };
            for one in inner {
                if one != Type::word("unknown") && !flat.contains(&one) {
                    flat.push(one);
                }
            }
        }
        match flat.len() {
            0 => Type::word("unknown"),
            1 => flat.remove(0),
            _ => Type::Both(flat),
        }
    }

    /// On one line, if it has no fields, which always stand on lines of their own.
    fn flat(&self) -> Option<String> {
        let joined = |members: &[Type], by: &str| {
            Some(members.iter().map(Type::flat_member).collect::<Option<Vec<_>>>()?.join(by))
        };
        match self {
            Type::Word(word) => Some(word.clone()),
            Type::Fields(fields) if fields.is_empty() => Some("Record<string, never>".to_owned()),
            Type::Fields(_) => None,
            Type::List(item) => Some(format!("{}[]", item.flat_member()?)),
            Type::Tuple(items, rest) => {
                let mut all = items.iter().map(Type::flat).collect::<Option<Vec<_>>>()?;
                if let Some(rest) = rest {
                    all.push(format!("...{}[]", rest.flat_member()?));
                }
                Some(format!("[{}]", all.join(", ")))
            }
            Type::Record(item) => Some(format!("Record<string, {}>", item.flat()?)),
            Type::Union(members) => joined(members, " | "),
            Type::Both(members) => joined(members, " & "),
        }
    }

    /// The same within another type: in parentheses where it would fall apart.
    fn flat_member(&self) -> Option<String> {
        let text = self.flat()?;
        Some(if matches!(self, Type::Union(_) | Type::Both(_)) { format!("({text})") } else { text })
    }

    /// As it stands behind `used` columns of a line that is indented by `indent`, with `closing` behind it.
    fn write(&self, indent: usize, used: usize, closing: usize) -> String {
        if let Some(flat) = self.flat().filter(|flat| used + flat.len() + closing <= WIDTH) {
            return flat;
        }
        let pad = " ".repeat(indent);
        match self {
            Type::Word(word) => word.clone(),
            Type::Fields(fields) => {
                let fields: String = fields.iter().map(|field| field.write(indent + 2)).collect();
                format!("{{\n{fields}{pad}}}")
            }
            // Parentheses stand around the lines of a union, which are indented no further.
            Type::List(item) if matches!(**item, Type::Union(_)) => {
                let item = item.write(indent, WIDTH, 0);
                let item = item.trim_start().strip_prefix("| ").unwrap_or(item.trim_start()).to_owned();
                format!("(\n{pad}  | {item}\n{pad})[]")
            }
            Type::List(item) if matches!(**item, Type::Both(_)) => {
                format!("({})[]", item.write(indent, used + 1, closing + 3))
            }
            Type::List(item) => format!("{}[]", item.write(indent, used, closing + 2)),
            Type::Tuple(items, rest) => {
                let mut text = String::from("[\n");
                for item in items {
                    text.push_str(&format!("{pad}  {},\n", item.write(indent + 2, indent + 2, 1)));
                }
                if let Some(rest) = rest {
                    let list = Type::List(rest.clone()).write(indent + 2, indent + 5, 0);
                    text.push_str(&format!("{pad}  ...{list}\n"));
                }
                format!("{text}{pad}]")
            }
            Type::Record(item) => {
                format!("Record<\n{pad}  string,\n{pad}  {}\n{pad}>", item.write(indent + 2, indent + 2, 0))
            }
            // A null beside one object hugs it.
            Type::Union(members) if hugs(members) => {
                let all: Vec<_> = members.iter().map(|one| one.write(indent, used, closing)).collect();
                all.join(" | ")
            }
            Type::Union(members) => {
                let mut text = String::new();
                for member in members {
                    text.push_str(&format!("\n{pad}  | {}", member.write(indent + 4, indent + 4, 1)));
                }
                text
            }
            Type::Both(members) => {
                let all: Vec<_> = members.iter().map(|one| one.write(indent, used, closing)).collect();
                all.join(" & ")
            }
        }
    }
}

/// Whether such a union stays on the line on which it begins.
fn hugs(members: &[Type]) -> bool {
    let has_fields = |one: &&Type| matches!(one, Type::Fields(fields) if !fields.is_empty());
    let is_null = |one: &Type| *one == Type::word("null");
    members.len() == 2 && members.iter().filter(has_fields).count() == 1 && members.iter().any(is_null)
}

impl Field {
    fn write(&self, indent: usize) -> String {
        let pad = " ".repeat(indent);
        let about = self.about.as_deref().map(|about| comment(about, indent)).unwrap_or_default();
        let head = format!("{pad}{}:", self.name);
        format!("{about}{head}{};\n", after(&head, &self.is, indent))
    }
}

/// A type behind `:` or `=`: on the same line, or a union on lines of its own.
fn after(head: &str, is: &Type, indent: usize) -> String {
    let text = is.write(indent, head.len() + 1, 1);
    if text.starts_with('\n') { text } else { format!(" {text}") }
}

/// `export …`, for a type with its name.
pub fn declaration(name: &str, about: Option<&str>, is: &Type) -> String {
    let about = about.map(|about| comment(about, 0)).unwrap_or_default();
    match is {
        Type::Fields(fields) if !fields.is_empty() => {
            format!("{about}export interface {name} {}\n", is.write(0, 0, 0))
        }
        is => {
            let head = format!("export type {name} =");
            format!("{about}{head}{};\n", after(&head, is, 0))
        }
    }
}

/// A comment for the next line: one line, if it fits.
pub fn comment(text: &str, indent: usize) -> String {
    let pad = " ".repeat(indent);
    let text = text.trim().replace("*/", "*\\/");
    if !text.contains('\n') && indent + text.chars().count() + "/**  */".len() <= WIDTH {
        return format!("{pad}/** {text} */\n");
    }
    let mut lines = String::new();
    for line in text.lines() {
        for part in wrapped(line, WIDTH - indent - " * ".len()) {
            lines.push_str(format!("{pad} * {part}").trim_end());
            lines.push('\n');
        }
    }
    format!("{pad}/**\n{lines}{pad} */\n")
}

/// A line in pieces of at most so many columns, broken between words.
fn wrapped(line: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in line.split_whitespace() {
        let last = lines.len() - 1;
        if lines[last].is_empty() {
            lines[last].push_str(word);
        } else if lines[last].chars().count() + 1 + word.chars().count() <= width {
            lines[last].push(' ');
            lines[last].push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}
