//! A session's slices: their beginnings, ends and pieces, in the overflow path.

use tally_abi::trace::{End, SliceRecord};

use super::state::{CurrentSlice, Session, SliceStart};
use crate::{Counts, Pinned, Sink, budget::Budget, for_each_counter, order::Draw};

impl Session {
    /// The current slice.
    pub(crate) fn slice_start(&self) -> SliceStart {
        SliceStart { group: self.current.draw.group, start_tsc: self.current.piece_start_tsc }
    }

    /// The length of the slice after the current one.
    #[inline]
    pub(crate) fn next_length(&self) -> u64 {
        self.config.slice.length() * u64::from(self.budget.slice_multiplier())
    }

    /// Draws the next group. In advance, for the overflow path.
    pub(super) fn draw_next(&mut self) {
        self.used = self.next_used;
        self.next = self.order.draw();
        self.next_used = self.group_at(self.next.group).used;
        self.switched.general = self.used | self.next_used;
    }

    /// Switches the current slice, or its remainder, in.
    pub(crate) fn switch_in(&mut self, tsc: u64) {
        self.current.piece = Counts::default();
        self.current.piece_start_tsc = tsc;
        self.running = true;
        self.ticks_until = tsc;
    }

    /// The remainder of the current slice, in its unit; 0 if its length was reached.
    pub(crate) fn left(&self) -> u64 {
        let length = self.config.slice.length() * u64::from(self.current.slice_multiplier);
        length.saturating_sub(self.current.slice[self.setup.timer])
    }

    /// Credits what was counted since the last credit, in the middle of the current slice.
    pub(crate) fn credit(&mut self, counted: &Counts, tsc: u64) {
        self.add_total(counted, tsc);
        self.current.slice.add(counted, self.used);
        self.current.piece.add(counted, self.used);
        self.current.credited = true;
    }

    fn add_total(&mut self, counted: &Counts, tsc: u64) {
        self.stats.session_ticks += tsc.saturating_sub(self.ticks_until);
        self.ticks_until = tsc;
        self.total.add(counted, 0);
    }

    /// Ends the current slice, which is running, with what was counted since the last credit.
    #[inline(always)]
    pub(crate) fn end_slice(&mut self, cpu: u16, counted: &Counts, tsc: u64, sink: &mut impl Sink) {
        self.stats.pmis += 1;
        // The timer's own value showed the overflow; the others were read after it.
        self.stats.rdpmcs += self.switched.counters();
        if self.current.credited {
            self.credit(counted, tsc);
            let CurrentSlice { slice, piece, .. } = self.current;
            self.record(cpu, End::Overflow, &piece, tsc, sink);
            self.complete_slice(&slice);
        } else {
            self.add_total(counted, tsc);
            self.record(cpu, End::Overflow, counted, tsc, sink);
            self.complete_slice(counted);
        }
    }

    /// Switches the current slice, which is credited, out.
    pub(crate) fn switch_out(&mut self, cpu: u16, end: End, tsc: u64, sink: &mut impl Sink) {
        let CurrentSlice { slice, piece, .. } = self.current;
        self.record(cpu, end, &piece, tsc, sink);
        // The PMU drops an overflow that was pending; its slice has ended all the same.
        if end == End::Stopped || self.left() == 0 {
            self.complete_slice(&slice);
        }
        self.running = false;
    }

    /// In the overflow path, where a slice has just ended: the program had stopped its counters.
    pub(crate) fn mark_idle(&mut self) {
        self.running = false;
    }

    /// Adds the current slice, in which `slice` was counted, to its group, and makes the next slice
    /// current.
    fn complete_slice(&mut self, slice: &Counts) {
        let turn = self.current_turn();
        if let Some(moments) = self.moments.get_mut(usize::from(self.current.draw.group)) {
            moments.add(slice, self.used, turn, self.round);
        }
        self.finished += 1;
        self.stats.lengthened += u64::from(self.current.slice_multiplier > 1);
        if self.current.credited {
            self.current = CurrentSlice::default();
        }
        self.current.draw = self.next;
        self.current.slice_multiplier = self.budget.slice_multiplier();
        if self.finished.is_multiple_of(Budget::SLICES) {
            self.budget.update(self.stats.engine_ticks, self.stats.session_ticks);
        }
        self.current.piece_start_tsc = self.ticks_until;
        self.draw_next();
        if self.bank.is_none() {
            self.restate_share();
        }
    }

    /// Restates the sums of the current slice's group if its share has changed: between two slices
    /// of the group, and after the publication of the one before. Returns whether it did.
    pub(super) fn restate_share(&mut self) -> bool {
        let Draw { group, share, .. } = self.current.draw;
        let moments = self.moments.get_mut(usize::from(group));
        let Some(moments) = moments.filter(|moments| moments.share() != share) else {
            return false;
        };
        moments.restate(share, self.round);
        true
    }

    /// Records what was counted since the current slice was switched in.
    #[inline(always)]
    fn record(&mut self, cpu: u16, end: End, piece: &Counts, tsc: u64, sink: &mut impl Sink) {
        let sequence = self.stats.slices;
        self.stats.slices += 1;
        let used = self.used;
        let stats = &mut self.stats;
        sink.record(|| {
            stats.records += 1;
            let mut record = SliceRecord {
                session: self.id,
                cpu,
                group: self.current.draw.group,
                mode: self.config.mode,
                end,
                events: used.count_ones() as u8,
                slice_multiplier: self.current.slice_multiplier,
                sequence,
                address_space: self.address_space,
                start_tsc: self.current.piece_start_tsc,
                end_tsc: tsc,
                cycles: piece[Pinned::Cycles],
                instructions: piece[Pinned::Instructions],
                counts: Counts::default().general,
            };
            let mut member = 0;
            for_each_counter(used, |counter| {
                if let Some(count) = record.counts.get_mut(member) {
                    *count = piece.general[counter];
                }
                member += 1;
            });
            record
        });
    }
}
