//! Branch prediction: direction, indirect targets, return addresses.
//!
//! The direction predictor is a table look-up, without branches of its own: on random data they
//! would cost the host a misprediction for each of the guest's.

/// Entries of each direction table, a power of two.
const TABLE: usize = 1 << 14;
/// Entries of the indirect-target table, a power of two.
const TARGETS: usize = 1 << 11;
/// Depth of the return stack, a power of two.
const RETURNS: usize = 32;

/// A core's predictors.
#[derive(Clone, Debug)]
pub(crate) struct Predictor {
    /// By address: a two-bit counter, and above it another that says which table to believe.
    local: Box<[u8; TABLE]>,
    /// By address and history: a two-bit counter.
    global: Box<[u8; TABLE]>,
    targets: Box<[u64; TARGETS]>,
    returns: [u64; RETURNS],
    top: usize,
    history: u64,
    path: u64,
}

/// What an outcome makes of a pair of entries.
#[derive(Clone, Copy)]
struct Step {
    local: u8,
    global: u8,
    wrong: bool,
}

/// Every step there is, by local entry (4 bits), global entry (2 bits) and outcome (1 bit).
static STEPS: [Step; 128] = steps();

const fn steps() -> [Step; 128] {
    let mut steps = [Step { local: 0, global: 0, wrong: false }; 128];
    let mut index = 0;
    while index < 128 {
        let (bias, chooser) = (index as u8 >> 3 & 3, index as u8 >> 5 & 3);
        let (global, taken) = (index as u8 >> 1 & 3, index as u8 & 1);
        let says = if chooser >> 1 == 1 { global >> 1 } else { bias >> 1 };
        let chooser = match (bias >> 1 == taken, global >> 1 == taken) {
            (false, true) => towards(chooser, 1),
            (true, false) => towards(chooser, 0),
            _ => chooser,
        };
        steps[index] = Step {
            local: towards(bias, taken) | chooser << 2,
            global: towards(global, taken),
            wrong: says != taken,
        };
        index += 1;
    }
    steps
}

/// A two-bit counter one step towards taken (1) or not (0).
const fn towards(counter: u8, taken: u8) -> u8 {
    match (taken, counter) {
        (1, 0..3) => counter + 1,
        (0, 1..=3) => counter - 1,
        _ => counter,
    }
}

impl Predictor {
    pub(crate) fn new() -> Predictor {
        Predictor {
            // Weakly taken, and weakly for the table by address.
            local: Box::new([2 | 1 << 2; TABLE]),
            global: Box::new([2; TABLE]),
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
        let local = &mut self.local[address & (TABLE - 1)];
        let global = &mut self.global[(address ^ self.history as usize) & (TABLE - 1)];
        let index = usize::from(*local) << 3 | usize::from(*global) << 1 | usize::from(taken);
        let step = STEPS[index & 127];
        (*local, *global) = (step.local, step.global);
        self.history = self.history << 1 | u64::from(taken);
        step.wrong
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
