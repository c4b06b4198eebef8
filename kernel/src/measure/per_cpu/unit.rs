//! The counter unit of this CPU (decision 68): it counts for the running program's session that has
//! asked for it, while that is started.
//!
//! It counts ring 3 alone, so it makes no difference where in the kernel it is loaded.

use super::Measure;
use crate::measure::context::Context;

impl Measure {
    /// Loads the unit with the events of the running program's session that is to count on it, and
    /// unloads it where that is not to any more. After every change of what is started or runs.
    pub(super) fn update_unit(&mut self) {
        let Some(unit) = &mut self.unit else { return };
        for context in self.slot.contexts_mut() {
            let Context { started, unit: Some(counts), .. } = context else { continue };
            match (*started, counts.is_loaded()) {
                (true, false) => counts.load(unit),
                (false, true) => counts.unload(unit),
                _ => {}
            }
        }
    }

    /// Unloads the unit, so that the counts are up to date and with the program's session.
    /// [`Self::update_unit`] has to follow if the program counts on.
    pub(super) fn unload_unit(&mut self) {
        let Some(unit) = &mut self.unit else { return };
        let counts = self.slot.contexts_mut().filter_map(|context| context.unit.as_mut());
        counts.filter(|counts| counts.is_loaded()).for_each(|counts| counts.unload(unit));
    }
}
