//! Branch prediction: directions, indirect targets, return addresses.
//!
//! Each predictor gets the outcome of a branch when it retires and returns whether its prediction
//! was wrong. They learn nothing on wrong paths.

mod buffer;
mod direction;
mod local;
mod target;

use self::{buffer::Buffer, direction::Directions, local::Locals, target::Targets};
use crate::{assist::Assist, geometry::Geometry};

/// A core's predictors.
#[derive(Clone, Debug)]
pub(crate) struct Predictor {
    directions: Directions,
    /// The assist of directions, if there is one.
    locals: Option<Box<Locals>>,
    targets: Targets,
    /// The taken branches that fetch knows of; none if it knows of all.
    taken: Option<Box<Buffer>>,
    returns: Box<[u64]>,
    top: usize,
    /// What was predicted of the last return or indirect branch.
    predicted: u64,
}

impl Predictor {
    /// Untrained predictors.
    pub(crate) fn new(geometry: &Geometry) -> Predictor {
        let is_assisted = geometry.assist == Some(Assist::Branch);
        let buffer = || Box::new(Buffer::new(geometry.target_buffer));
        Predictor {
            directions: Directions::new(),
            locals: is_assisted.then(|| Box::new(Locals::new())),
            targets: Targets::new(),
            taken: geometry.has_target_buffer.then(buffer),
            returns: vec![0; usize::from(geometry.returns.max(1))].into_boxed_slice(),
            top: 0,
            predicted: 0,
        }
    }

    /// The target that was predicted of the last return or indirect branch.
    pub(crate) fn predicted_target(&self) -> u64 {
        self.predicted
    }

    /// Learns a conditional branch's outcome; returns whether the prediction was wrong.
    #[inline(always)]
    pub(crate) fn conditional(&mut self, pc: u64, taken: bool) -> bool {
        let wrong = self.directions.learn(pc, taken);
        match &mut self.locals {
            None => wrong,
            Some(locals) => locals.learn(pc, taken, wrong),
        }
    }

    /// Learns an indirect branch's target; returns whether the prediction was wrong.
    pub(crate) fn indirect(&mut self, pc: u64, target: u64) -> bool {
        let predicted = self.targets.learn(pc, target);
        self.predicted = predicted;
        predicted != target
    }

    /// A branch was taken; returns whether fetch knew of it before it was decoded.
    #[inline(always)]
    pub(crate) fn knows(&mut self, pc: u64) -> bool {
        match &mut self.taken {
            None => true,
            Some(buffer) => buffer.touch(pc),
        }
    }

    /// Pushes a call's return address, over the oldest if the stack is full.
    #[inline]
    pub(crate) fn call(&mut self, return_address: u64) {
        self.top = if self.top + 1 == self.returns.len() { 0 } else { self.top + 1 };
        self.returns[self.top] = return_address;
    }

    /// Pops a return address; returns whether it differs from `target`, the actual one.
    #[inline]
    pub(crate) fn ret(&mut self, target: u64) -> bool {
        let predicted = self.returns[self.top];
        self.predicted = predicted;
        self.top = if self.top == 0 { self.returns.len() - 1 } else { self.top - 1 };
        predicted != target
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn predictor(returns: u8) -> Predictor {
        Predictor::new(&Geometry { returns, ..Geometry::ICELAKE_SERVER })
    }

    #[test]
    fn returns_match_calls_to_the_stack_depth() {
        for depth in [22, 32] {
            let mut predictor = predictor(depth);
            (0..u64::from(depth)).for_each(|pc| predictor.call(pc + 1));
            assert_eq!((0..u64::from(depth)).rev().filter(|pc| predictor.ret(pc + 1)).count(), 0);
            assert!(predictor.ret(7));
        }
    }

    #[test]
    fn calls_deeper_than_the_stack_overwrite_the_oldest() {
        let mut predictor = predictor(16);
        (0..20).for_each(|pc| predictor.call(pc + 1));
        let wrong = (0..20).rev().filter(|pc| predictor.ret(pc + 1)).count();
        assert_eq!(wrong, 4);
    }
}
