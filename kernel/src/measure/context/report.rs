//! The end of a context: its last values go to the host, or to the log.

use alloc::vec::Vec;

use tally_abi::{Reading, Value, wire::Message};
use tally_pmu::Resolved;

use super::Context;
use crate::{machine::serial, memory::user::UserMemory};

impl Context {
    /// The values that the session's end reports.
    fn take_last_readings(&mut self) -> Vec<Reading> {
        self.last_readings.take().unwrap_or_else(|| self.session.final_readings())
    }

    /// Ends the context: reports its last values, and unmaps the bank from `memory`, the measured
    /// program's, unless that is gone.
    pub fn close(mut self, memory: Option<&mut UserMemory>) {
        self.report();
        let bank = self.bank;
        drop(self.session);
        if let (Some(address), Some(memory)) = (bank, memory) {
            memory.unmap_for_kernel(address).expect("only the kernel can unmap a bank");
        }
    }

    /// Sends the last values to the host; also to the log of a machine without a wire.
    fn report(&mut self) {
        let readings = self.take_last_readings();
        if !serial::has_wire() {
            self.log(&readings);
        }
        let (session, stats) = (self.id(), self.stats());
        serial::send(&Message::Session {
            session,
            pid: self.pid,
            program: &self.program,
            address_space: self.session.address_space(),
            config: self.session.config(),
        });
        let plan = self.session.plan();
        let events = self.resolved.iter().zip(&plan.assignments);
        for ((event, assigned), reading) in events.zip(readings) {
            let Resolved { name, native, mode, .. } = event;
            let (native, mode, place) = (*native, *mode, plan.place_in_slices(*assigned));
            serial::send(&Message::Reading { session, event: name, native, mode, place, reading });
        }
        serial::send(&Message::Stats { session, stats });
    }

    fn log(&self, readings: &[Reading]) {
        log::info!("{}: session {}, half width at 95 %, coverage", self.program, self.id());
        for (event, reading) in self.resolved.iter().zip(readings) {
            let (event, share) = (&event.name, 100.0 * reading.coverage().unwrap_or_default());
            match reading.value {
                Value::Exact { count } => log::info!("{event:<44} {count:>16} exact"),
                Value::Estimated { estimate, half_width_95, .. } => {
                    log::info!("{event:<44} {estimate:>16} +-{half_width_95:.0} {share:.1}%");
                }
                Value::NotMeasured { reason } => {
                    log::info!("{event:<44} not measured: {}", reason.message());
                }
            }
        }
        let s = self.stats();
        log::info!("{} slices, {} rounds, {} overflow interrupts", s.slices, s.rounds, s.pmis);
        let (engine, session) = (s.engine_ticks, s.session_ticks);
        log::info!("engine overhead: {engine} of {session} TSC ticks");
    }
}
