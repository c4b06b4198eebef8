//! Branch prediction: direction, indirect targets, return addresses.
//!
//! The direction predictor is written without branches of its own: on random data it would
//! otherwise cost the host a misprediction for each of the guest's.

/// Entries of each direction table, a power of two.
const TABLE: usize = 1 << 14;
/// Entries of the indirect-target table, a power of two.
const TARGETS: usize = 1 << 11;
/// Depth of the return stack, a power of two.
const RETURNS: usize = 32;

/// A core's predictors.
#[derive(Clone, Debug)]
pub(crate) struct Predictor {
    /// Two-bit counters by address.
    bimodal: Box<[u8; TABLE]>,
    /// Two-bit counters by address and history.
    global: Box<[u8; TABLE]>,
    /// Two-bit counters: which of the two to believe.
    chooser: Box<[u8; TABLE]>,
    targets: Box<[u64; TARGETS]>,
    returns: [u64; RETURNS],
    top: usize,
    history: u64,
    path: u64,
}

impl Predictor {
    pub(crate) fn new() -> Predictor {
        Predictor {
            bimodal: Box::new([2; TABLE]),
            global: Box::new([2; TABLE]),
            chooser: Box::new([1; TABLE]),
            targets: Box::new([0; TARGETS]),
            returns: [0; RETURNS],
            top: 0,
            history: 0,
            path: 0,
        }
    }

    /// Learns a conditional branch's outcome; whether it had been predicted wrongly.
    #[inline]
    pub(crate) fn conditional(&mut self, pc: u64, taken: bool) -> bool {
        let address = (pc ^ pc >> 14) as usize;
        let by_pc = address & (TABLE - 1);
        let by_history = (address ^ self.history as usize) & (TABLE - 1);
        let (simple, global) = (&mut self.bimodal[by_pc], &mut self.global[by_history]);
        let (says_simple, says_global) = (*simple >> 1, *global >> 1);
        let chooser = &mut self.chooser[by_pc];
        let believes_global = *chooser >> 1;
        let says = says_simple ^ ((says_simple ^ says_global) & believes_global);
        let outcome = u8::from(taken);
        let disagree = says_simple ^ says_global;
        let step = i8::from(says_global == outcome) * 2 - 1;
        *chooser = chooser.saturating_add_signed(step * disagree as i8).min(3);
        let step = outcome as i8 * 2 - 1;
        *simple = simple.saturating_add_signed(step).min(3);
        *global = global.saturating_add_signed(step).min(3);
        self.history = self.history << 1 | u64::from(taken);
        says != outcome
    }

    /// Learns an indirect branch's target; whether it had been predicted wrongly.
    #[inline]
    pub(crate) fn indirect(&mut self, pc: u64, target: u64) -> bool {
        let slot = (pc ^ pc >> 11 ^ self.path) as usize & (TARGETS - 1);
        let wrong = self.targets[slot] != target;
        self.targets[slot] = target;
        self.path = self.path << 3 ^ target >> 2 ^ target >> 9;
        wrong
    }

    /// Notes a call's return address.
    #[inline]
    pub(crate) fn call(&mut self, return_address: u64) {
        self.top = (self.top + 1) % RETURNS;
        self.returns[self.top] = return_address;
    }

    /// Whether the return to `target` had been predicted wrongly.
    #[inline]
    pub(crate) fn ret(&mut self, target: u64) -> bool {
        let predicted = self.returns[self.top];
        self.top = (self.top + RETURNS - 1) % RETURNS;
        predicted != target
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn misses(outcomes: impl Iterator<Item = bool>) -> usize {
        let mut predictor = Predictor::new();
        outcomes.filter(|taken| predictor.conditional(0x1234, *taken)).count()
    }

    #[test]
    fn a_steady_branch_is_learnt() {
        assert!(misses((0..10_000).map(|_| false)) <= 20);
        assert!(misses((0..10_000).map(|_| true)) <= 20);
    }

    #[test]
    fn a_short_loop_is_learnt() {
        assert!(misses((0..10_000).map(|i| i % 7 != 6)) < 200);
    }

    #[test]
    fn random_outcomes_miss_half_the_time() {
        let mut state = 1u64;
        let missed = misses((0..100_000).map(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state >> 63 == 1
        }));
        assert!((45_000..55_000).contains(&missed), "{missed}");
    }

    #[test]
    fn returns_match_calls_to_the_stack_depth() {
        let mut predictor = Predictor::new();
        (0..32).for_each(|pc| predictor.call(pc + 1));
        assert_eq!((0..32).rev().filter(|pc| predictor.ret(pc + 1)).count(), 0);
        assert!(predictor.ret(7));
    }
}
