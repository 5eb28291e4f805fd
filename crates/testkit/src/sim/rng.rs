//! SplitMix64: small, and the same on every machine.

/// The only source of chance in a run.
#[derive(Clone, Debug)]
pub(super) struct SimRng(u64);

impl SimRng {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x9e37_79b9_7f4a_7c15)
    }

    /// Another sequence from the same seed; this one does not advance. For draws that were added later, so
    /// that an old seed still draws the same.
    pub(super) fn fork(&self, purpose: u64) -> Self {
        Self::new(self.0 ^ purpose.wrapping_mul(0xd6e8_feb8_6659_fd93))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to `n - 1`; 0 if `n` is 0.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        if n == 0 { 0 } else { self.next() % n }
    }

    /// True `percent` times of a hundred.
    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(super) fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        of.get(self.below(of.len() as u64) as usize)
    }

    /// A wait in milliseconds: mostly short, sometimes long.
    pub(super) fn wait(&mut self, usual: u64) -> i64 {
        let ms = match self.below(20) {
            0 => self.below(usual * 20 + 1),
            1..4 => 0,
            _ => self.below(usual + 1),
        };
        i64::try_from(ms).unwrap_or(i64::MAX)
    }
}
