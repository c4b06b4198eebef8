//! The counter unit of this CPU (decision 68): counts for the running program's session that uses
//! it, while that is started.
//!
//! The unit counts only ring 3, so it can be loaded anywhere in the kernel.

use super::Measure;
use crate::measure::context::Context;

impl Measure {
    /// Loads the unit with the events of the running program's session that uses it, or unloads it
    /// if there is none. Call it after every start, stop or switch.
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

    /// Unloads the unit, so that the counts of the program's session are up to date.
    /// [`Self::update_unit`] has to follow if the program continues to count.
    pub(super) fn unload_unit(&mut self) {
        let Some(unit) = &mut self.unit else { return };
        let counts = self.slot.contexts_mut().filter_map(|context| context.unit.as_mut());
        counts.filter(|counts| counts.is_loaded()).for_each(|counts| counts.unload(unit));
    }
}
