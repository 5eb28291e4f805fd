//! In which language the server says what people read. What only programs read is English.

/// A language that everything which is said through it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    /// English.
    #[default]
    English,
    /// Simplified Chinese.
    Chinese,
}

impl Language {
    /// What a language tag asks for: `zh-CN` is Chinese, whatever else is English.
    pub fn tagged(tag: &str) -> Self {
        if tag.to_ascii_lowercase().starts_with("zh") { Self::Chinese } else { Self::English }
    }

    /// The one of two that is in this language.
    pub fn of<T>(self, english: T, chinese: T) -> T {
        match self {
            Self::English => english,
            Self::Chinese => chinese,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // R: U6
    #[test]
    fn chinese_is_said_to_whoever_reads_it() {
        for (tag, language) in [
            ("zh", Language::Chinese),
            ("zh-Hans", Language::Chinese),
            ("ZH-cn", Language::Chinese),
            ("en-GB", Language::English),
            ("de", Language::English),
            ("", Language::English),
        ] {
            assert_eq!(Language::tagged(tag), language, "{tag}");
        }
    }
}
