//! Random numbers that depend on a seed and on nothing else, so that a seed is a full report of a failure.

/// SplitMix64: one word of state, and every seed is a good one.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        word ^ (word >> 31)
    }

    /// From 0 to `n - 1`; 0 if there is nothing to choose from.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.word()) * u128::from(n)) >> 64) as u64
    }

    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.index(from.len())]
    }

    /// One of what an iterator gives, without collecting it.
    pub fn pick_of<T>(&mut self, from: impl ExactSizeIterator<Item = T>) -> Option<T> {
        let index = self.index(from.len());
        from.into_iter().nth(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_says_everything() {
        let words = |seed| {
            let mut random = Random::new(seed);
            [random.word(), random.word(), random.word()]
        };
        assert_eq!(words(7), words(7));
        assert_ne!(words(7), words(8));
        assert_eq!(words(0)[0], 0xE220_A839_7B1D_CDAF, "the published first word of seed 0");
    }

    #[test]
    fn numbers_stay_within_their_bounds_and_reach_them() {
        let mut random = Random::new(1);
        let mut seen = [0; 6];
        for _ in 0..600 {
            seen[random.between(2, 5) as usize] += 1;
        }
        assert_eq!(seen[..2], [0, 0]);
        assert!(seen[2..].iter().all(|&times| times > 100), "{seen:?}");
        assert_eq!(random.below(0), 0);
        assert_eq!(random.pick_of([1, 2, 3].iter().take(0)), None);
        assert_eq!(random.pick_of([4].iter()), Some(&4));
    }
}
