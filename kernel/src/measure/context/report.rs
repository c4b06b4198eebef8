//! The end of a context: its last values go to the host, or to the log.

use tally_abi::{Instance, Reading, Value, wire::Message};
use tally_engine::Session;
use tally_pmu::Resolved;

use super::Context;
use crate::{
    machine::serial,
    measure::{readings::vouched, unit::UnitCounts},
    memory::user::UserMemory,
};

impl Context {
    /// Ends the context: reports its last values, and unmaps the bank from `owner`, the memory of
    /// the program that opened the session, unless that is gone.
    pub fn close(mut self, owner: Option<&mut UserMemory>) {
        self.report();
        if let Some(owner) = owner {
            self.unmap(owner);
        }
    }

    /// Reports the last values: of its instances if it has any, all that are not reported.
    fn report(&mut self) {
        if self.instances.is_some() {
            while self.report_instance() {}
        } else {
            let readings = self.last_readings.take();
            let readings = readings.unwrap_or_else(|| self.session.final_readings());
            self.report_values(&self.session, None, &vouched(readings));
        }
    }

    /// Reports the last values of the next instance. Returns whether there was one.
    pub fn report_instance(&mut self) -> bool {
        let Some(instances) = &mut self.instances else { return false };
        let index = instances.reported;
        instances.reported += 1;
        match self.instances.as_ref().and_then(|instances| instances.get(&self.session, index)) {
            Some((of, session)) => {
                self.report_values(session, Some(of), &vouched(session.final_readings()));
                true
            }
            None => false,
        }
    }

    /// Sends values to the host; also to the log of a machine without a wire.
    fn report_values(&self, session: &Session, of: Option<Instance>, readings: &[Reading]) {
        let name = of.as_ref().and_then(Instance::name).unwrap_or(&self.program);
        if !serial::has_wire() {
            self.log(session, name, readings);
        }
        let id = session.id();
        serial::send(&Message::Session {
            session: id,
            pid: self.pid,
            program: name,
            address_space: session.address_space(),
            config: session.config(),
            thread: of.map(|of| of.number),
        });
        let plan = session.plan();
        let events = self.resolved.iter().zip(&plan.assignments);
        let unit = self.unit.as_ref().map(UnitCounts::counts).unwrap_or_default();
        let unit = unit.iter().copied().map(Some).chain(core::iter::repeat(None));
        for (((event, assigned), reading), unit) in events.zip(readings).zip(unit) {
            let Resolved { name, native, mode, .. } = event;
            let (native, mode, place) = (*native, *mode, plan.place_in_slices(*assigned));
            let (session, reading) = (id, *reading);
            let event = name;
            serial::send(&Message::Reading { session, event, native, mode, place, reading, unit });
        }
        serial::send(&Message::Stats { session: id, stats: session.stats() });
    }

    fn log(&self, session: &Session, name: &str, readings: &[Reading]) {
        log::info!("{name}: session {}, half width at 95 %, coverage", session.id());
        for (event, count) in self.resolved.iter().zip(self.unit_counts().unwrap_or_default()) {
            log::info!("{:<44} {count:>16} on the counter unit", event.name);
        }
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
        let s = session.stats();
        log::info!("{} slices, {} rounds, {} overflow interrupts", s.slices, s.rounds, s.pmis);
        let (engine, session) = (s.engine_ticks, s.session_ticks);
        log::info!("engine overhead: {engine} of {session} TSC ticks");
    }
}
