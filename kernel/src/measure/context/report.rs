//! The end of a context: its last values are sent to the host, or to the log, in steps, so that
//! they delay no other program (decision 21).

use alloc::vec::Vec;
use core::{mem::take, ops::Range};

use tally_abi::{Instance, Reading, Value, wire::Message};
use tally_engine::Session;
use tally_pmu::Resolved;

use super::Context;
use crate::{
    machine::serial,
    measure::readings::{EVENTS_A_STEP, vouched},
};

/// Progress of the report of the last values, for a context without instances.
#[derive(Default)]
pub struct Report {
    readings: Vec<Reading>,
    /// Number of readings sent; `None` before all of them are computed.
    sent: Option<usize>,
}

impl Context {
    /// Makes the next step of the report of the last values. The session must have stopped for
    /// good. Returns whether there is another step.
    pub fn report_step(&mut self, report: &mut Report) -> bool {
        if self.instances.is_some() {
            return self.report_instance();
        }
        let Report { readings, sent } = report;
        let events = self.events();
        let end = |first: usize| events.min(first + EVENTS_A_STEP);
        match *sent {
            None if readings.len() < events => {
                let next = readings.len()..end(readings.len());
                readings.extend(next.map(|event| self.session.reading(event)));
            }
            None => {
                *readings = vouched(self.session.complete_final(take(readings)));
                self.send_session(&self.session, None);
                *sent = Some(0);
            }
            Some(first) => {
                self.send_readings(&self.session, readings, first..end(first));
                *sent = Some(end(first));
                if end(first) == events {
                    self.send_stats(&self.session);
                    return false;
                }
            }
        }
        true
    }

    /// Reports the last values of the next instance. Returns whether there was one.
    fn report_instance(&mut self) -> bool {
        let Some(instances) = &mut self.instances else { return false };
        let index = instances.reported;
        instances.reported += 1;
        match self.instances.as_ref().and_then(|instances| instances.get(&self.session, index)) {
            Some((of, session)) => {
                let readings = vouched(session.final_readings());
                self.send_session(session, Some(of));
                self.send_readings(session, &readings, 0..readings.len());
                self.send_stats(session);
                true
            }
            None => false,
        }
    }

    /// Starts sending the values of `session` to the host, and to the log if the machine has no
    /// wire.
    fn send_session(&self, session: &Session, of: Option<Instance>) {
        let program = of.as_ref().and_then(Instance::name).unwrap_or(&self.program);
        if !serial::has_wire() {
            log::info!("{program}: session {}, half width at 95 %, coverage", session.id());
        }
        serial::send(&Message::Session {
            session: session.id(),
            pid: self.pid,
            program,
            address_space: session.address_space(),
            config: session.config(),
            thread: of.map(|of| of.number),
        });
    }

    /// Sends the values of the events `which`; `readings` has the values of all events.
    fn send_readings(&self, session: &Session, readings: &[Reading], which: Range<usize>) {
        let (id, plan) = (session.id(), session.plan());
        for index in which {
            let (resolved, reading) = (&self.resolved[index], readings[index]);
            let unit = self.unit.as_ref().map(|unit| unit.counts()[index]);
            if !serial::has_wire() {
                log_value(&resolved.name, &reading, unit);
            }
            let Resolved { name: event, native, mode, .. } = resolved;
            let (native, mode) = (*native, *mode);
            let place = plan.place_in_slices(plan.assignments[index]);
            let session = id;
            serial::send(&Message::Reading { session, event, native, mode, place, reading, unit });
        }
    }

    fn send_stats(&self, session: &Session) {
        let stats = session.stats();
        if !serial::has_wire() {
            let s = &stats;
            log::info!("{} slices, {} rounds, {} overflow interrupts", s.slices, s.rounds, s.pmis);
            let (engine, session) = (s.engine_ticks, s.session_ticks);
            log::info!("engine overhead: {engine} of {session} TSC ticks");
        }
        serial::send(&Message::Stats { session: session.id(), stats });
    }
}

fn log_value(event: &str, reading: &Reading, unit: Option<u64>) {
    if let Some(count) = unit {
        log::info!("{event:<44} {count:>16} on the counter unit");
    }
    let share = 100.0 * reading.coverage().unwrap_or_default();
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
