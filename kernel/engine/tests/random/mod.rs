//! Random numbers of streams: a generator with a seed. Each kind of streams has its own deviates.

use rand_xoshiro::{
    Xoshiro256PlusPlus,
    rand_core::{Rng as _, SeedableRng as _},
};

/// Random number generator.
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// Makes the generator with a seed.
    pub fn new(seed: u64) -> Random {
        Random(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Returns a number from 0 to 1, excluding 1.
    pub fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}
