//! Ids and signatures that look like the provider's and are the same in every run.

const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// `length` letters and digits that depend on `seed` only.
pub(crate) fn letters(seed: &str, length: usize) -> String {
    let mut state = seed.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let next = |_| {
        // splitmix64: neighboring seeds give unrelated letters.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        char::from(LETTERS[((z ^ (z >> 31)) % 62) as usize])
    };
    (0..length).map(next).collect()
}

/// A provider's signature of its reasoning. A request that echoes another signature for the same text is refused.
pub(crate) fn signature(text: &str) -> String {
    format!("Eq{}==", letters(&format!("signature/{text}"), 44))
}

/// Noise: bytes that are neither UTF-8 nor JSON nor line ends.
pub(crate) fn garbage(length: u32) -> Vec<u8> {
    (0..length).map(|i| 0x80 | (i.wrapping_mul(37) as u8 & 0x3f)).collect()
}
