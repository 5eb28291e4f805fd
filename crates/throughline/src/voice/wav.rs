//! The header of a WAV file.

/// The header of 16-bit mono sound. Without a length it is that of a stream, which players read to its end.
///
/// ```
/// let header = throughline::voice::wav_header(24_000, Some(48_000));
/// assert_eq!((&header[..4], header.len()), (&b"RIFF"[..], 44));
/// ```
pub fn wav_header(sample_rate_hz: u32, data_bytes: Option<u32>) -> [u8; 44] {
    const HEADER_REST: u32 = 36;
    // A whole number of samples.
    let data = data_bytes.unwrap_or((u32::MAX - HEADER_REST) & !1);
    let mut header = [0; 44];
    header[..4].copy_from_slice(b"RIFF");
    header[4..8].copy_from_slice(&data.saturating_add(HEADER_REST).to_le_bytes());
    header[8..16].copy_from_slice(b"WAVEfmt ");
    header[16..20].copy_from_slice(&16_u32.to_le_bytes());
    header[20..22].copy_from_slice(&1_u16.to_le_bytes());
    header[22..24].copy_from_slice(&1_u16.to_le_bytes());
    header[24..28].copy_from_slice(&sample_rate_hz.to_le_bytes());
    header[28..32].copy_from_slice(&sample_rate_hz.saturating_mul(2).to_le_bytes());
    header[32..34].copy_from_slice(&2_u16.to_le_bytes());
    header[34..36].copy_from_slice(&16_u16.to_le_bytes());
    header[36..40].copy_from_slice(b"data");
    header[40..44].copy_from_slice(&data.to_le_bytes());
    header
}

/// Beginning of a WAV file, as far as its samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WavStart {
    /// Position of the first sample.
    pub data: usize,
    /// Bytes of samples; what follows them is no sound. `None` = to the end: the length of a stream is not known.
    pub data_bytes: Option<u64>,
    /// Samples of a second.
    pub sample_rate_hz: u32,
    /// 16-bit PCM of one channel.
    pub is_plain: bool,
}

/// Maximum length of the header of a WAV file, in bytes: pictures and lyrics belong after the samples.
const WAV_START_BYTES_MAX: usize = 64 << 10;
/// Lengths from here on are written by engines that do not know the length of the sound yet.
const STREAM_BYTES_MIN: u32 = 0x7fff_0000;

/// Reads the header of a WAV file. `None` = more bytes are needed.
///
/// # Errors
/// The reason why it is invalid, as a sentence without a subject.
pub fn wav_start(bytes: &[u8]) -> Result<Option<WavStart>, &'static str> {
    if bytes.len() < 12 {
        return Ok(None);
    }
    if &bytes[..4] != b"RIFF" || &bytes[8..12] != b"WAVE" {
        return Err("its output is not a WAV file");
    }
    let number = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let short = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    let (mut at, mut format) = (12, None);
    while bytes.len() >= at + 8 {
        let length = usize::try_from(number(at + 4)).unwrap_or(usize::MAX);
        match &bytes[at..at + 4] {
            b"data" => {
                let Some((sample_rate_hz, is_plain)) = format else {
                    return Err("its WAV file has samples of an unknown format");
                };
                let data_bytes = Some(number(at + 4)).filter(|bytes| (1..STREAM_BYTES_MIN).contains(bytes));
                let data_bytes = data_bytes.map(u64::from);
                return Ok(Some(WavStart { data: at + 8, data_bytes, sample_rate_hz, is_plain }));
            }
            b"fmt " if bytes.len() >= at + 24 => {
                let is_plain = (short(at + 8), short(at + 10), short(at + 22)) == (1, 1, 16);
                format = Some((number(at + 12), is_plain));
            }
            _ => {}
        }
        // Sections have even lengths.
        at = at.saturating_add(8).saturating_add(length).saturating_add(length % 2);
    }
    if bytes.len() > WAV_START_BYTES_MAX { Err("its WAV file has no samples") } else { Ok(None) }
}

/// The samples in pieces of a WAV file: what follows them is left out.
#[derive(Clone, Copy, Debug)]
pub struct WavSamples {
    left: Option<u64>,
}

impl WavSamples {
    /// The samples of a file with this header.
    pub fn of(start: &WavStart) -> Self {
        Self { left: start.data_bytes }
    }

    /// The part of the next piece that is samples.
    pub fn take<'a>(&mut self, piece: &'a [u8]) -> &'a [u8] {
        let Some(left) = &mut self.left else { return piece };
        let bytes = usize::try_from(*left).unwrap_or(usize::MAX).min(piece.len());
        *left -= bytes as u64;
        &piece[..bytes]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wav_header_round_trips_and_waits_for_all_bytes() {
        let header = wav_header(22_050, None);
        for end in 0..header.len() {
            assert_eq!(wav_start(&header[..end]), Ok(None), "{end}");
        }
        let start = WavStart { data: 44, data_bytes: None, sample_rate_hz: 22_050, is_plain: true };
        assert_eq!(wav_start(&header), Ok(Some(start)));
        let known = wav_start(&wav_header(22_050, Some(6))).unwrap().unwrap();
        assert_eq!(known.data_bytes, Some(6));
        let mut samples = WavSamples::of(&known);
        assert_eq!(
            (samples.take(b"abcd"), samples.take(b"efLIST"), samples.take(b"x")),
            (&b"abcd"[..], &b"ef"[..], &b""[..])
        );
        assert_eq!(WavSamples::of(&start).take(b"abc"), b"abc");
    }

    #[test]
    fn wav_reader_skips_other_chunks_and_rejects_other_files() {
        let header = wav_header(8_000, Some(2));
        let mut with_list = header[..36].to_vec();
        with_list.extend(b"LIST\x03\0\0\0abc\0");
        with_list.extend(&header[36..]);
        let found = wav_start(&with_list).unwrap().unwrap();
        assert_eq!((found.data, found.sample_rate_hz), (56, 8_000));

        assert!(wav_start(b"<html><body>").is_err());
        let mut stereo = header;
        stereo[22] = 2;
        assert!(!wav_start(&stereo).unwrap().unwrap().is_plain);
        let mut huge = header;
        huge[12..20].copy_from_slice(b"junk\xff\xff\xff\xff");
        assert_eq!(wav_start(&huge), Ok(None));
        let endless = [&huge[..], &vec![0; WAV_START_BYTES_MAX]].concat();
        assert_eq!(wav_start(&endless), Err("its WAV file has no samples"));
    }
}
