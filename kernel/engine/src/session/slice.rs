//! A session's slices: their starts, ends and pieces.

use core::mem::replace;

use tally_abi::{
    SessionStats, Slice,
    trace::{End, SliceRecord},
};

use super::state::{CurrentSlice, CycleMark, LastChoice, Session, SliceStart};
use crate::{
    CounterMask, Counts, Pinned, Sink,
    budget::{Budget, Stretch},
    core_time::CoreReading,
    for_each_counter,
    order::Draw,
    switch::{DrawnSlice, Switch},
};

/// Lengths of a slice after which it is cut, where ring 0 takes the time: TSC ticks for each cycle
/// of its length.
const CUT_AFTER: u64 = 2;

/// Number of slices for which the engine waits for one without an entry to the kernel, before it
/// uses the upper bound of a switch's cost: programs enter the kernel often at their start.
const PATIENCE: u64 = 256;

impl Session {
    /// Counts an interrupt or exception other than a PMI in ring 3, while the session is on the
    /// counters.
    pub fn note_interruption(&mut self) {
        self.stats.interruptions += 1;
    }

    /// Group and start of the current slice.
    pub(crate) fn slice_start(&self) -> SliceStart {
        SliceStart { group: self.current.drawn.draw.group, start_tsc: self.current.piece_start_tsc }
    }

    /// Switches in the current slice, or its remainder.
    pub(crate) fn switch_in(&mut self, tsc: u64) {
        self.current.piece = Counts::default();
        self.current.piece_start_tsc = tsc;
        self.live.running = true;
        self.ticks_until = tsc;
        self.mark = None;
    }

    /// The remainder of the current slice, in the slice timer's unit; 0 if its length was reached.
    pub(crate) fn left(&self) -> u64 {
        if self.current.is_cut {
            return 0;
        }
        let length = u64::from(self.live.schedule.oldest().length);
        length.saturating_sub(self.current.slice[self.setup.timer])
    }

    /// Returns whether events count ring 0, and the slice timer does not.
    fn times_ring_3_alone(&self) -> bool {
        self.setup.kernel && !self.config.mode.kernel()
    }

    /// The TSC at which the current slice has to be cut. Where its timer counts ring 3 alone, one
    /// slice would contain all events of a phase that the program spends in ring 0. `None`
    /// elsewhere, after a cut, and while the session does not run.
    pub(crate) fn deadline(&self) -> Option<u64> {
        let length = u64::from(self.live.schedule.oldest().length);
        (self.times_ring_3_alone() && self.live.running && !self.current.is_cut)
            .then(|| self.current.piece_start_tsc.saturating_add(CUT_AFTER * length))
    }

    /// Leaves nothing of the current slice, which is credited.
    pub(crate) fn cut(&mut self) {
        self.current.is_cut = true;
        self.skew.note_cut();
    }

    /// Credits the counts of the counters in the mask `used` since the last credit, in the middle
    /// of the current slice.
    pub(crate) fn credit(&mut self, counted: &Counts, used: u16, tsc: u64) {
        self.add_total(counted, tsc);
        self.current.slice.add(counted, used);
        self.current.piece.add(counted, used);
        self.current.credited = true;
    }

    fn add_total(&mut self, counted: &Counts, tsc: u64) {
        self.stats.session_ticks += tsc.saturating_sub(self.ticks_until);
        self.ticks_until = tsc;
        self.total.add(counted, 0);
    }

    /// The counters of the first slice that is not folded, and the counters that were read at its
    /// end, which include those of the next slice.
    pub(crate) fn sets(&self) -> [CounterMask; 2] {
        let used = self.plan.group(self.current.drawn.draw.group).used;
        let Switch { general, reference, .. } = *self.following();
        [used, general].map(|general| CounterMask { general, reference })
    }

    /// Folds the current slice, which an overflow interrupt has ended: adds the counts of its
    /// counters in `set` since the last credit. `read` counters were read. The next slice becomes
    /// current.
    pub(crate) fn fold_slice(&mut self, counted: &Counts, [set, read]: [CounterMask; 2], tsc: u64) {
        self.stats.pmis += 1;
        self.stats.slices += 1;
        // The timer's value itself showed the overflow; the others were read after it.
        self.stats.rdpmcs += read.counters();
        if self.current.credited {
            self.credit(counted, set.general, tsc);
            let slice = self.current.slice;
            self.complete_slice(&slice, set.general);
        } else {
            self.add_total(counted, tsc);
            self.complete_slice(counted, set.general);
        }
    }

    /// Switches out the current slice, which is credited.
    pub(crate) fn switch_out(&mut self, cpu: u16, end: End, tsc: u64, sink: &mut impl Sink) {
        let CurrentSlice { slice, .. } = self.current;
        self.record(cpu, end, sink, |session| session.piece(tsc, &Counts::default()));
        self.stats.slices += 1;
        // The PMU drops an overflow that was pending; the slice has ended all the same.
        if end == End::Stopped || self.left() == 0 {
            let used = self.set().general;
            self.advance();
            self.complete_slice(&slice, used);
            self.update_budget();
        }
        self.live.running = false;
    }

    /// The piece of the current slice that ends at `end_tsc`, with `counted` since the last credit.
    pub(crate) fn piece(&self, end_tsc: u64, counted: &Counts) -> Piece {
        let CurrentSlice { drawn, credited, piece, piece_start_tsc: start_tsc, .. } = self.current;
        let mut counts = *counted;
        if credited {
            counts.add(&piece, self.plan.group(drawn.draw.group).used);
        }
        Piece { drawn, start_tsc, end_tsc, counts }
    }

    /// Marks the session as not running in the overflow path, at the end of a slice in which the
    /// program had stopped its counters.
    pub(crate) fn mark_idle(&mut self) {
        self.live.running = false;
    }

    /// Adds the current slice, with the counts `slice`, to its group, makes the next slice current,
    /// and draws one more.
    fn complete_slice(&mut self, slice: &Counts, used: u16) {
        let turn = self.current_turn();
        let CurrentSlice { drawn, credited, .. } = self.current;
        if let Some(moments) = self.moments.get_mut(usize::from(drawn.draw.group)) {
            moments.add(slice, used, turn, self.round);
        }
        if let Some(strata) = &mut self.strata {
            strata.add(drawn.draw.group, slice);
        }
        if let Some(phases) = &mut self.phases {
            phases.tracker.add(drawn.draw.group, slice);
        }
        self.finished += 1;
        let is_lengthened = drawn.multiplier > 1 && self.config.slice != Slice::Auto;
        self.stats.lengthened += u64::from(is_lengthened);
        if credited {
            self.current = CurrentSlice::default();
        }
        let followed = self.following().slice();
        self.current.drawn = followed;
        self.lengths.renew(followed.draw.round);
        self.draw_one();
        self.current.piece_start_tsc = self.ticks_until;
        if self.bank.is_none() {
            self.restate_share();
        }
    }

    /// Updates the budget if [`Budget::SLICES`] slices have ended since the last update. The time
    /// of their folding is charged already: one folding treats many slices.
    pub(crate) fn update_budget(&mut self) {
        if self.finished - self.budgeted < Budget::SLICES {
            return;
        }
        self.budgeted = self.finished;
        if self.budget.switch_cycles() != 0 {
            return;
        }
        let SessionStats { engine_ticks, session_ticks, .. } = self.stats;
        if self.lengths.is_starting() {
            self.budget.skip(engine_ticks, session_ticks);
        } else {
            self.budget.update(engine_ticks, session_ticks);
            self.restate_lengths();
        }
    }

    /// Returns whether the cost of a switch was measured and is not just an upper bound.
    pub(crate) fn knows_switch_cycles(&self) -> bool {
        self.budget.is_exact()
    }

    /// Returns whether core cycles should be read at the end of the last slice.
    pub(crate) fn is_mark_due(&self) -> bool {
        self.mark.is_none_or(|mark| {
            !mark.is_second || self.finished - mark.finished >= Budget::SLICES - 1
        })
    }

    /// Takes the processor's core cycles at the end of the last slice. If they were read at the end
    /// of the slice before it too, computes the cost of a switch and chooses the length of slices
    /// by it.
    pub(crate) fn mark_cycles(&mut self, reading: CoreReading) {
        let (finished, counted) = (self.finished, self.total[Pinned::Cycles]);
        let then = self.mark.filter(|then| then.finished + 1 == finished);
        let is_second = then.is_some();
        self.mark = Some(CycleMark { finished, reading, counted, is_second });
        let Some(then) = then else { return };
        let (cost, is_exact) = reading.beside(&then.reading, counted - then.counted);
        self.budget.observe(cost, is_exact);
        if self.finished - self.last_choice.finished >= Budget::SLICES {
            self.choose_length(&reading);
        }
    }

    /// Chooses the length of slices by the cost of a switch.
    fn choose_length(&mut self, reading: &CoreReading) {
        let now = LastChoice {
            finished: self.finished,
            counted: self.total[Pinned::Cycles],
            core_cycles: reading.cycles,
            is_of_length: !self.lengths.is_starting(),
        };
        let then = replace(&mut self.last_choice, now);
        if then.is_of_length && (self.budget.is_exact() || self.finished >= PATIENCE) {
            let slices = now.finished - then.finished;
            let counted = if self.times_ring_3_alone() {
                // Ring 0 is the program's time too, and ends slices.
                let engine = self.budget.switch_cycles().saturating_mul(slices);
                now.core_cycles.wrapping_sub(then.core_cycles).saturating_sub(engine)
            } else {
                now.counted - then.counted
            };
            self.budget.update_by_cycles(Stretch { slices, counted });
            self.restate_lengths();
        }
    }

    /// Restates the sums of the current slice's group if its share has changed: between two slices
    /// of the group, and after the publication of the earlier one. Returns whether it did.
    pub(super) fn restate_share(&mut self) -> bool {
        let Draw { group, share, .. } = self.current.drawn.draw;
        let moments = self.moments.get_mut(usize::from(group));
        let Some(moments) = moments.filter(|moments| moments.share() != share) else {
            return false;
        };
        moments.restate(share, self.round);
        true
    }

    /// Records a piece of a slice; calls `piece` only if there is a trace.
    #[inline(always)]
    pub(crate) fn record(
        &mut self,
        cpu: u16,
        end: End,
        sink: &mut impl Sink,
        piece: impl FnOnce(&Session) -> Piece,
    ) {
        sink.record(|| {
            self.stats.records += 1;
            let Piece { drawn, start_tsc, end_tsc, counts } = piece(self);
            let used = self.plan.group(drawn.draw.group).used;
            let mut record = SliceRecord {
                session: self.id,
                cpu,
                group: drawn.draw.group,
                mode: self.config.mode,
                end,
                events: used.count_ones() as u8,
                slice_multiplier: drawn.multiplier,
                sequence: self.stats.slices,
                address_space: self.address_space,
                start_tsc,
                end_tsc,
                cycles: counts[Pinned::Cycles],
                instructions: counts[Pinned::Instructions],
                counts: Counts::default().general,
            };
            let mut member = 0;
            for_each_counter(used, |counter| {
                if let Some(count) = record.counts.get_mut(member) {
                    *count = counts.general[counter];
                }
                member += 1;
            });
            record
        });
    }
}

/// A piece of a slice, the content of a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    drawn: DrawnSlice,
    start_tsc: u64,
    end_tsc: u64,
    /// The piece's counts.
    counts: Counts,
}
