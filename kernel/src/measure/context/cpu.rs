//! A context that counts a CPU, whichever program that runs (decision 49).

use alloc::{boxed::Box, vec::Vec};

use tally_abi::{Error, Instance, Reading, usage::Usage};

use super::Context;
use crate::measure::{counted_cpu::CountedCpu, cpus::upcalls, readings::vouched, refusal::Refusal};

impl Context {
    /// The context of a CPU, of this session.
    ///
    /// # Errors
    /// It counts ring 0 or is exclusive: it takes turns with the sessions of programs.
    pub(in crate::measure) fn on_cpu(self, session: u32, cpu: u16) -> Result<Box<Self>, Refusal> {
        if self.why_alone().is_some() {
            let detail = "whole CPUs are counted in ring 3, and not exclusively: leave out \
                          --kernel and :k"
                .into();
            return Err(Refusal { error: Error::BadArgument, detail });
        }
        Ok(Box::new(Context { cpu: Some(CountedCpu::new(session, cpu)), ..self }))
    }

    /// Returns whether it counts a CPU.
    pub(in crate::measure) fn is_of_a_cpu(&self) -> bool {
        self.cpu.is_some()
    }

    /// Returns whether it counts a CPU for this session.
    pub(in crate::measure) fn is_of_cpu_session(&self, session: u32) -> bool {
        self.cpu.is_some_and(|of| of.session == session)
    }

    /// Leaves the upcalls of its thresholds that have fired to the session's owner. Returns whether
    /// there were any.
    pub(in crate::measure) fn post_upcalls_of_cpu(&mut self) -> bool {
        let Some(CountedCpu { session, cpu, .. }) = self.cpu else { return false };
        let upcalls = core::iter::from_fn(|| self.take_upcall());
        upcalls.map(|upcall| upcalls::post(session, cpu, upcall)).count() > 0
    }

    /// The CPU runs a program from here on, which has used `usage` before. The program's address
    /// space is active.
    pub(in crate::measure) fn begin_on_cpu(&mut self, usage: Usage) {
        if let Some(of) = &mut self.cpu {
            of.begin(usage);
            self.begin();
        }
    }

    /// The CPU runs the program no more, which has used `usage`. The session is on no counter.
    pub(in crate::measure) fn end_on_cpu(&mut self, usage: Usage) {
        if let Some(of) = &mut self.cpu {
            of.credit(usage);
            of.end();
            self.end();
        }
    }

    /// The CPU and its values, which are up to date: the program that it runs has used `running`.
    pub(in crate::measure) fn values_of_cpu(
        &mut self,
        running: Option<Usage>,
    ) -> Option<(Instance, Vec<Reading>)> {
        let of = self.cpu.as_mut()?;
        running.into_iter().for_each(|usage| of.credit(usage));
        // In one step, as the values.
        self.session.publish_errors(1);
        Some((of.instance(), vouched(self.session.readings())))
    }
}
