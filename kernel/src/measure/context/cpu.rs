//! A context that counts a CPU, whatever program runs on it (decision 49).

use alloc::{boxed::Box, vec::Vec};

use tally_abi::{Error, Instance, Reading, usage::Usage};

use super::Context;
use crate::measure::{counted_cpu::CountedCpu, cpus::upcalls, readings::vouched, refusal::Refusal};

impl Context {
    /// Makes a context of this session for a CPU.
    ///
    /// # Errors
    /// The context counts ring 0 or is exclusive, but must take turns with the sessions of
    /// programs.
    pub(in crate::measure) fn on_cpu(self, session: u32, cpu: u16) -> Result<Box<Self>, Refusal> {
        if self.why_alone().is_some() {
            let detail = "whole CPUs are counted in ring 3, and not exclusively: leave out \
                          --kernel and :k"
                .into();
            return Err(Refusal { error: Error::BadArgument, detail });
        }
        Ok(Box::new(Context { cpu: Some(CountedCpu::new(session, cpu)), ..self }))
    }

    /// Returns whether the context counts a CPU.
    pub(in crate::measure) fn is_of_a_cpu(&self) -> bool {
        self.cpu.is_some()
    }

    /// Returns whether the context counts a CPU for this session.
    pub(in crate::measure) fn is_of_cpu_session(&self, session: u32) -> bool {
        self.cpu.is_some_and(|of| of.session == session)
    }

    /// Posts the upcalls of its fired thresholds for the session's owner. Returns whether there
    /// were any.
    pub(in crate::measure) fn post_upcalls_of_cpu(&mut self) -> bool {
        let Some(CountedCpu { session, cpu, .. }) = self.cpu else { return false };
        let upcalls = core::iter::from_fn(|| self.take_upcall());
        upcalls.map(|upcall| upcalls::post(session, cpu, upcall)).count() > 0
    }

    /// Records that the CPU counts for the session from now on, also while it runs no program.
    pub(in crate::measure) fn start_on_cpu(&mut self) {
        self.session.count_idle();
    }

    /// Records that the CPU starts to run a program, which has used `usage` before. The program's
    /// address space is active.
    pub(in crate::measure) fn begin_on_cpu(&mut self, usage: Usage) {
        if let Some(of) = &mut self.cpu {
            of.begin(usage);
            self.begin();
        }
    }

    /// Records that the CPU stops running a program, which has used `usage`. The session is on no
    /// counter.
    pub(in crate::measure) fn end_on_cpu(&mut self, usage: Usage) {
        if let Some(of) = &mut self.cpu {
            of.credit(usage);
            of.end();
            self.end();
        }
    }

    /// The CPU and its values, which are up to date; the running program has used `running`.
    pub(in crate::measure) fn values_of_cpu(
        &mut self,
        running: Option<Usage>,
    ) -> Option<(Instance, Vec<Reading>)> {
        let of = self.cpu.as_mut()?;
        running.into_iter().for_each(|usage| of.credit(usage));
        // The errors are published in one step, like the values.
        self.session.publish_errors(1);
        Some((of.instance(), vouched(self.session.readings())))
    }
}
