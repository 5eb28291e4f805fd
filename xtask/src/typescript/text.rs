//! Formatting: comments, and types on one line or several, as Biome would with the width of `web/biome.json`.

/// Columns of a line.
pub(crate) const WIDTH: usize = 110;

/// A type, so far as its layout needs to know it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TsType {
    /// Words that stay together.
    Word(String),
    /// `{ … }`, a field a line; without fields it is a record of nothing.
    Fields(Vec<TsField>),
    /// `T[]`
    List(Box<TsType>),
    /// `[A, B, ...C[]]`
    Tuple(Vec<TsType>, Option<Box<TsType>>),
    /// `Record<string, T>`
    Record(Box<TsType>),
    /// `A | B`
    Union(Vec<TsType>),
    /// `A & B`
    Intersection(Vec<TsType>),
}

/// A field of an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TsField {
    /// As it is written: with quotes, brackets and question mark.
    pub(crate) name: String,
    pub(crate) comment: Option<String>,
    pub(crate) ty: TsType,
}

impl TsType {
    pub(crate) fn word(text: impl Into<String>) -> Self {
        Self::Word(text.into())
    }

    /// `A | B`, flat and with each member once.
    pub(crate) fn union(members: impl IntoIterator<Item = TsType>) -> Self {
        let mut flat: Vec<TsType> = Vec::new();
        for member in members {
            let inner = if let TsType::Union(inner) = member { inner } else { vec![member] };
            for one in inner {
                if !flat.contains(&one) {
                    flat.push(one);
                }
            }
        }
        // `unknown` takes in everything.
        if flat.contains(&TsType::word("unknown")) {
            return TsType::word("unknown");
        }
        flat.retain(|one| *one != TsType::word("never"));
        match flat.len() {
            0 => TsType::word("never"),
            1 => flat.remove(0),
            _ => TsType::Union(flat),
        }
    }

    /// `A & B`, without what adds nothing.
    pub(crate) fn intersection(members: impl IntoIterator<Item = TsType>) -> Self {
        let mut flat: Vec<TsType> = Vec::new();
        for member in members {
            let inner = if let TsType::Intersection(inner) = member { inner } else { vec![member] };
            for one in inner {
                if one != TsType::word("unknown") && !flat.contains(&one) {
                    flat.push(one);
                }
            }
        }
        match flat.len() {
            0 => TsType::word("unknown"),
            1 => flat.remove(0),
            _ => TsType::Intersection(flat),
        }
    }

    /// On one line, if it has no fields, which always stand on lines of their own.
    fn flat(&self) -> Option<String> {
        let joined = |members: &[TsType], by: &str| {
            Some(members.iter().map(TsType::flat_member).collect::<Option<Vec<_>>>()?.join(by))
        };
        match self {
            TsType::Word(word) => Some(word.clone()),
            TsType::Fields(fields) if fields.is_empty() => Some("Record<string, never>".to_owned()),
            TsType::Fields(_) => None,
            TsType::List(item) => Some(format!("{}[]", item.flat_member()?)),
            TsType::Tuple(items, rest) => {
                let mut all = items.iter().map(TsType::flat).collect::<Option<Vec<_>>>()?;
                if let Some(rest) = rest {
                    all.push(format!("...{}[]", rest.flat_member()?));
                }
                Some(format!("[{}]", all.join(", ")))
            }
            TsType::Record(item) => Some(format!("Record<string, {}>", item.flat()?)),
            TsType::Union(members) => joined(members, " | "),
            TsType::Intersection(members) => joined(members, " & "),
        }
    }

    /// The same within another type: in parentheses where it would fall apart.
    fn flat_member(&self) -> Option<String> {
        let text = self.flat()?;
        Some(if matches!(self, TsType::Union(_) | TsType::Intersection(_)) {
            format!("({text})")
        } else {
            text
        })
    }

    /// As it stands behind `used` columns of a line that is indented by `indent`, with `closing` behind it.
    fn write(&self, indent: usize, used: usize, closing: usize) -> String {
        if let Some(flat) = self.flat().filter(|flat| used + flat.len() + closing <= WIDTH) {
            return flat;
        }
        let pad = " ".repeat(indent);
        match self {
            TsType::Word(word) => word.clone(),
            TsType::Fields(fields) => {
                let fields: String = fields.iter().map(|field| field.write(indent + 2)).collect();
                format!("{{\n{fields}{pad}}}")
            }
            // Parentheses stand around the lines of a union, which are indented no further.
            TsType::List(item) if matches!(**item, TsType::Union(_)) => {
                let item = item.write(indent, WIDTH, 0);
                let item = item.trim_start().strip_prefix("| ").unwrap_or(item.trim_start()).to_owned();
                format!("(\n{pad}  | {item}\n{pad})[]")
            }
            TsType::List(item) if matches!(**item, TsType::Intersection(_)) => {
                format!("({})[]", item.write(indent, used + 1, closing + 3))
            }
            TsType::List(item) => format!("{}[]", item.write(indent, used, closing + 2)),
            TsType::Tuple(items, rest) => {
                let mut text = String::from("[\n");
                for item in items {
                    text.push_str(&format!("{pad}  {},\n", item.write(indent + 2, indent + 2, 1)));
                }
                if let Some(rest) = rest {
                    let list = TsType::List(rest.clone()).write(indent + 2, indent + 5, 0);
                    text.push_str(&format!("{pad}  ...{list}\n"));
                }
                format!("{text}{pad}]")
            }
            TsType::Record(item) => {
                format!("Record<\n{pad}  string,\n{pad}  {}\n{pad}>", item.write(indent + 2, indent + 2, 0))
            }
            // A null beside one object hugs it.
            TsType::Union(members) if stays_inline(members) => {
                let all: Vec<_> = members.iter().map(|one| one.write(indent, used, closing)).collect();
                all.join(" | ")
            }
            TsType::Union(members) => {
                let mut text = String::new();
                for member in members {
                    text.push_str(&format!("\n{pad}  | {}", member.write(indent + 4, indent + 4, 1)));
                }
                text
            }
            TsType::Intersection(members) => {
                let all: Vec<_> = members.iter().map(|one| one.write(indent, used, closing)).collect();
                all.join(" & ")
            }
        }
    }
}

/// True if the union stays on the line on which it begins.
fn stays_inline(members: &[TsType]) -> bool {
    let has_fields = |one: &&TsType| matches!(one, TsType::Fields(fields) if !fields.is_empty());
    let is_null = |one: &TsType| *one == TsType::word("null");
    members.len() == 2 && members.iter().filter(has_fields).count() == 1 && members.iter().any(is_null)
}

impl TsField {
    fn write(&self, indent: usize) -> String {
        let pad = " ".repeat(indent);
        let about = self.comment.as_deref().map(|about| comment(about, indent)).unwrap_or_default();
        let head = format!("{pad}{}:", self.name);
        format!("{about}{head}{};\n", type_after(&head, &self.ty, indent))
    }
}

/// A type behind `:` or `=`: on the same line, or a union on lines of its own.
fn type_after(head: &str, ty: &TsType, indent: usize) -> String {
    let text = ty.write(indent, head.len() + 1, 1);
    if text.starts_with('\n') { text } else { format!(" {text}") }
}

/// `export …`, for a type with its name.
pub(crate) fn declaration(name: &str, about: Option<&str>, ty: &TsType) -> String {
    let about = about.map(|about| comment(about, 0)).unwrap_or_default();
    match ty {
        TsType::Fields(fields) if !fields.is_empty() => {
            format!("{about}export interface {name} {}\n", ty.write(0, 0, 0))
        }
        ty => {
            let head = format!("export type {name} =");
            format!("{about}{head}{};\n", type_after(&head, ty, 0))
        }
    }
}

/// A comment for the next line: one line, if it fits.
pub(crate) fn comment(text: &str, indent: usize) -> String {
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
