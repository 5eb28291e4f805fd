//! Kinds of characters, as far as speech needs them.

/// Written without spaces between words: Chinese and Japanese.
pub(crate) fn is_spaceless(character: char) -> bool {
    matches!(character,
        '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Chinese and Japanese characters with their punctuation.
pub(crate) fn is_east_asian(character: char) -> bool {
    is_spaceless(character)
        || matches!(character, '\u{3000}'..='\u{303f}' | '\u{ff01}'..='\u{ff60}' | '“' | '”' | '‘' | '’' | '…' | '—')
}

/// Width of a character as [`SentenceLimits`](crate::SentenceLimits) counts it.
pub(crate) fn width(character: char) -> usize {
    let is_wide = is_spaceless(character)
        || matches!(character, '\u{1100}'..='\u{11ff}' | '\u{3000}'..='\u{303f}' | '\u{ac00}'..='\u{d7af}'
            | '\u{ff01}'..='\u{ff60}');
    if is_wide { 2 } else { 1 }
}

/// Attached to the character in front of it.
pub(crate) fn is_combining(character: char) -> bool {
    matches!(character,
        '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{591}'..='\u{5bd}' | '\u{610}'..='\u{61a}'
        | '\u{64b}'..='\u{65f}' | '\u{900}'..='\u{903}' | '\u{93a}'..='\u{94f}' | '\u{e31}' | '\u{e34}'..='\u{e3a}'
        | '\u{e47}'..='\u{e4e}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20f0}'
        | '\u{3099}' | '\u{309a}' | '\u{fe20}'..='\u{fe2f}')
}

/// A blank within a line.
pub(crate) fn is_blank(character: char) -> bool {
    character != '\n' && character != '\r' && character.is_whitespace()
}

/// Pictures and ornaments: emoji with their modifiers, dingbats, boxes, private characters.
pub(crate) fn is_picture(character: char) -> bool {
    matches!(character,
        '\u{2300}'..='\u{23ff}' | '\u{2500}'..='\u{27bf}' | '\u{2900}'..='\u{297f}'
        | '\u{2b00}'..='\u{2bff}' | '\u{20e3}' | '\u{203c}' | '\u{2049}' | '\u{2139}' | '\u{3030}' | '\u{303d}'
        | '\u{3297}' | '\u{3299}' | '\u{e000}'..='\u{f8ff}' | '\u{fe00}'..='\u{fe0f}' | '\u{fffd}'
        | '\u{1f000}'..='\u{1faff}' | '\u{e0000}'..='\u{10ffff}')
}

/// An arrow between two things.
pub(crate) fn is_arrow(character: char) -> bool {
    matches!(character, '\u{2190}'..='\u{21ff}' | '\u{27f0}'..='\u{27ff}')
}

/// True for characters that are neither seen nor heard: controls, joiners, marks of direction.
pub(crate) fn is_invisible(character: char) -> bool {
    (character.is_control() && character != '\t')
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff0}'..='\u{fffc}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emoji_are_pictures_and_letters_are_not() {
        for picture in "😀❤☀✅⭐🇫🏽▶⬆🧑".chars() {
            assert!(is_picture(picture), "{picture:?}");
        }
        for letter in "a1é中。#*©™°€→".chars() {
            assert!(!is_picture(letter), "{letter:?}");
        }
    }
}
