//! The voice of fake models: humming vowels, so that there is sound to hear, to show as a waveform and to
//! move a mouth. It speaks no words. 16-bit little-endian PCM, mono, at [`SAMPLE_RATE_HZ`], as OpenAI and
//! Gemini stream it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::f64::consts::TAU;

/// Samples of a second.
pub(crate) const SAMPLE_RATE_HZ: u32 = 24_000;
/// Length of a vowel, in samples.
const VOWEL_SAMPLES: usize = 3_360;
/// Length of a consonant, in samples: a quieter moment.
const CONSONANT_SAMPLES: usize = 1_200;
/// Silence after a word, in samples.
const GAP_SAMPLES: usize = 1_440;
/// Pitch of the voice, in Hz.
const PITCH_HZ: f64 = 190.0;
/// Harmonics of the pitch.
const HARMONICS: u32 = 14;

/// A word as it is sent: its text with what follows it, and its sound.
pub(crate) struct SpokenWord<'a> {
    pub text: &'a str,
    /// Samples as base64.
    pub data: String,
}

/// The words of a text, each with its sound.
pub(crate) fn speak(text: &str) -> impl Iterator<Item = SpokenWord<'_>> {
    text.split_inclusive([' ', '\n', '，', '。', '！', '？'])
        .map(|text| SpokenWord { text, data: STANDARD.encode(hum(text)) })
}

/// The sound of a whole text, in base64.
pub(crate) fn speak_whole(text: &str) -> String {
    STANDARD.encode(hum(text))
}

/// The sound of a text, as samples.
pub(crate) fn hum(text: &str) -> Vec<u8> {
    let mut pcm = Vec::new();
    for letter in text.chars() {
        match formants(letter) {
            Some(formants) => tone(formants, VOWEL_SAMPLES, 9_000.0, &mut pcm),
            None if letter.is_alphabetic() => tone((250.0, 1_100.0), CONSONANT_SAMPLES, 1_500.0, &mut pcm),
            None => pcm.resize(pcm.len() + 2 * GAP_SAMPLES, 0),
        }
    }
    pcm
}

/// The first two resonances of a vowel, in Hz. Each Chinese character hums a particular vowel.
fn formants(letter: char) -> Option<(f64, f64)> {
    const VOWELS: [(f64, f64); 5] =
        [(800.0, 1_200.0), (500.0, 1_900.0), (300.0, 2_300.0), (500.0, 900.0), (320.0, 700.0)];
    let vowel = match letter.to_ascii_lowercase() {
        'a' => 0,
        'e' => 1,
        'i' | 'y' => 2,
        'o' => 3,
        'u' | 'w' => 4,
        '\u{4e00}'..='\u{9fff}' => u32::from(letter) as usize % VOWELS.len(),
        _ => return None,
    };
    Some(VOWELS[vowel])
}

/// Harmonics around two resonances, swelling and fading so that no piece begins with a click.
fn tone((first, second): (f64, f64), samples: usize, loudness: f64, pcm: &mut Vec<u8>) {
    let near = |hz: f64, formant: f64| 1.0 / (1.0 + ((hz - formant) / 120.0).powi(2));
    let weights: Vec<(f64, f64)> = (1..=HARMONICS)
        .map(|nth| PITCH_HZ * f64::from(nth))
        .map(|hz| (hz, near(hz, first) + 0.5 * near(hz, second)))
        .collect();
    for sample in 0..samples {
        let at = sample as f64 / f64::from(SAMPLE_RATE_HZ);
        let swell = (TAU / 2.0 * sample as f64 / samples as f64).sin();
        let wave: f64 = weights.iter().map(|(hz, weight)| weight * (TAU * hz * at).sin()).sum();
        pcm.extend_from_slice(&((loudness * swell * wave) as i16).to_le_bytes());
    }
}
