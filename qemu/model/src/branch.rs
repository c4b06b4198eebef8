//! Branch prediction: directions, indirect targets, return addresses.
//!
//! Each predictor is trained with a branch's outcome when the branch retires, and returns the
//! prediction or whether it was wrong. On wrong paths the predictors use the path's own
//! [`Histories`] and learn nothing.

mod buffer;
mod direction;
mod local;
mod returns;
mod target;

use self::{
    buffer::Buffer, direction::Directions, local::Locals, returns::ReturnStack, target::Targets,
};
use crate::{
    assist::Assist,
    block::{Branch, BranchKind},
    geometry::Geometry,
};

/// A core's predictors.
#[derive(Clone, Debug)]
pub(crate) struct Predictor {
    directions: Directions,
    /// The local predictor that assists `directions`, if enabled.
    locals: Option<Box<Locals>>,
    targets: Targets,
    /// The branch target buffer; `None` if fetch knows all taken branches.
    taken: Option<Box<Buffer>>,
    returns: ReturnStack,
}

/// Branch history before the next branch of a wrong path, as fetch predicted it.
#[derive(Clone, Debug)]
pub(crate) struct Histories {
    /// Outcomes of conditional branches.
    outcomes: u64,
    /// Targets of indirect branches.
    targets: u64,
    returns: ReturnStack,
}

impl Histories {
    pub(crate) fn new(geometry: &Geometry) -> Histories {
        Histories { outcomes: 0, targets: 0, returns: ReturnStack::new(geometry.returns) }
    }
}

impl Predictor {
    /// Makes untrained predictors.
    pub(crate) fn new(geometry: &Geometry) -> Predictor {
        let is_assisted = geometry.assist == Some(Assist::Branch);
        let buffer = || Box::new(Buffer::new(geometry.target_buffer));
        Predictor {
            directions: Directions::new(),
            locals: is_assisted.then(|| Box::new(Locals::new())),
            targets: Targets::new(),
            taken: geometry.has_target_buffer.then(buffer),
            returns: ReturnStack::new(geometry.returns),
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

    /// Trains an indirect branch's target; returns the target that was predicted.
    pub(crate) fn indirect(&mut self, pc: u64, target: u64) -> u64 {
        self.targets.learn(pc, target)
    }

    /// Records a taken branch; returns whether fetch knew of it before it was decoded.
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
        self.returns.push(return_address);
    }

    /// Pops the predicted return address.
    #[inline]
    pub(crate) fn ret(&mut self) -> u64 {
        self.returns.pop()
    }

    /// Sets `path` to the histories that fetch has behind a mispredicted branch of `kind`. The
    /// predictors have just been trained with it: it went to `target`, fetch to `predicted`.
    pub(crate) fn begin_path(
        &self,
        path: &mut Histories,
        kind: BranchKind,
        [target, predicted]: [u64; 2],
    ) {
        let is_conditional = kind == BranchKind::Cond;
        path.outcomes = self.directions.history() ^ u64::from(is_conditional);
        path.targets = match kind {
            BranchKind::IndirectJump | BranchKind::IndirectCall => {
                self.targets.path() ^ target::step(target) ^ target::step(predicted)
            }
            _ => self.targets.path(),
        };
        path.returns.copy_from(&self.returns);
    }

    /// Where fetch continues behind a branch of a wrong path, whose target is `target` if it is
    /// direct; `None` if there is no prediction.
    pub(crate) fn next_on_path(
        &self,
        path: &mut Histories,
        branch: &Branch,
        target: u64,
    ) -> Option<u64> {
        match branch.kind {
            BranchKind::None => return Some(branch.fall_through),
            BranchKind::Call | BranchKind::IndirectCall => path.returns.push(branch.fall_through),
            _ => {}
        }
        match branch.kind {
            BranchKind::Return => Some(path.returns.pop()),
            BranchKind::IndirectJump | BranchKind::IndirectCall => {
                let target = self.targets.predict(branch.pc, path.targets)?;
                path.targets = target::behind(path.targets, target);
                Some(target)
            }
            BranchKind::Cond => {
                let predicted = self.directions.predict(branch.pc, path.outcomes);
                let taken = match &self.locals {
                    None => predicted,
                    Some(locals) => locals.predict(branch.pc, predicted),
                };
                path.outcomes = path.outcomes << 1 | u64::from(taken);
                Some(if taken { target } else { branch.fall_through })
            }
            _ => Some(target),
        }
    }

    /// Returns whether fetch knows a taken branch of a wrong path before it is decoded.
    pub(crate) fn knows_on_path(&self, pc: u64) -> bool {
        self.taken.as_ref().is_none_or(|buffer| buffer.has(pc))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEOMETRY: Geometry = Geometry::ICELAKE_SERVER;

    fn branch(kind: BranchKind, pc: u64) -> Branch {
        Branch { kind, pc, fall_through: pc + 4 }
    }

    /// A wrong path behind a conditional branch at 0x1000 that has just gone to `target`.
    fn path(predictor: &Predictor, [target, predicted]: [u64; 2]) -> Histories {
        let mut path = Histories::new(&GEOMETRY);
        predictor.begin_path(&mut path, BranchKind::Cond, [target, predicted]);
        path
    }

    #[test]
    fn a_path_has_the_outcome_that_was_predicted() {
        let (mut predictor, mut state) = (Predictor::new(&GEOMETRY), 1u64);
        let follower = branch(BranchKind::Cond, 0x2000);
        let mut known = 0;
        for round in 0..20_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let taken = state >> 63 == 1;
            if predictor.conditional(0x1000, taken) && round > 10_000 {
                let mut path = path(&predictor, [0, 1]);
                let next = predictor.next_on_path(&mut path, &follower, 0x3000);
                // The branch alternates: on the wrong path the next outcome follows the predicted
                // one.
                known += i32::from((next == Some(0x3000)) != taken) * 2 - 1;
            }
            predictor.conditional(0x2000, taken);
        }
        assert!(known > 4_000, "{known}");
    }

    #[test]
    fn a_path_goes_on_as_predicted_and_changes_nothing() {
        let mut predictor = Predictor::new(&GEOMETRY);
        (0..8).for_each(|_| _ = predictor.conditional(0x1000, false));
        predictor.indirect(0x2000, 0x8000);
        predictor.call(0x5000);
        let mut path = path(&predictor, [0, 1]);
        for (kind, pc, next) in [
            (BranchKind::None, 0x1000, Some(0x1004)),
            (BranchKind::Jump, 0x1000, Some(0x9000)),
            (BranchKind::Cond, 0x1000, Some(0x1004)),
            (BranchKind::Call, 0x1000, Some(0x9000)),
            (BranchKind::IndirectCall, 0x2000, Some(0x8000)),
            (BranchKind::IndirectJump, 0x2000, Some(0x8000)),
            (BranchKind::IndirectJump, 0x2010, None),
            (BranchKind::Return, 0x1000, Some(0x2004)),
            (BranchKind::Return, 0x1000, Some(0x1004)),
            (BranchKind::Return, 0x1000, Some(0x5000)),
        ] {
            let got = predictor.next_on_path(&mut path, &branch(kind, pc), 0x9000);
            assert_eq!(got, next, "{kind:?}");
        }
        assert_eq!(predictor.ret(), 0x5000);
    }
}
