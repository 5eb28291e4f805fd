//! Language of texts for people. Texts that only programs read are English.

/// Language of texts for people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UserLanguage {
    /// English, the default.
    #[default]
    English,
    /// Simplified Chinese.
    Chinese,
}

impl UserLanguage {
    /// Language of a tag: `zh-CN` is Chinese, everything else English.
    pub fn from_tag(tag: &str) -> Self {
        if tag.to_ascii_lowercase().starts_with("zh") { Self::Chinese } else { Self::English }
    }

    /// The one of two that is in this language.
    pub fn pick<T>(self, english: T, chinese: T) -> T {
        match self {
            Self::English => english,
            Self::Chinese => chinese,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn language_is_chinese_only_for_zh_tags() {
        for (tag, language) in [
            ("zh", UserLanguage::Chinese),
            ("zh-Hans", UserLanguage::Chinese),
            ("ZH-cn", UserLanguage::Chinese),
            ("en-GB", UserLanguage::English),
            ("de", UserLanguage::English),
            ("", UserLanguage::English),
        ] {
            assert_eq!(UserLanguage::from_tag(tag), language, "{tag}");
        }
    }
}
