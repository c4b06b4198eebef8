//! Branch prediction: directions, indirect targets, return addresses.
//!
//! Each predictor gets the outcome of a branch when it retires and returns what it predicted, or
//! whether that was wrong. They learn nothing on wrong paths.

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
        }
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

    /// Learns an indirect branch's target; returns the one that was predicted.
    pub(crate) fn indirect(&mut self, pc: u64, target: u64) -> u64 {
        self.targets.learn(pc, target)
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

    /// Pops a return address, the one that is predicted.
    #[inline]
    pub(crate) fn ret(&mut self) -> u64 {
        let predicted = self.returns[self.top];
        self.top = if self.top == 0 { self.returns.len() - 1 } else { self.top - 1 };
        predicted
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
            assert_eq!(
                (0..u64::from(depth)).rev().filter(|pc| predictor.ret() != pc + 1).count(),
                0
            );
            assert_ne!(predictor.ret(), 7);
        }
    }

    #[test]
    fn calls_deeper_than_the_stack_overwrite_the_oldest() {
        let mut predictor = predictor(16);
        (0..20).for_each(|pc| predictor.call(pc + 1));
        let wrong = (0..20).rev().filter(|pc| predictor.ret() != pc + 1).count();
        assert_eq!(wrong, 4);
    }
}
