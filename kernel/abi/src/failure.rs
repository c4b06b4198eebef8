//! Failures that the command line causes, to test the reports of kernel and host.

/// Failure to cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Panic.
    Panic,
    /// Read memory that is not mapped.
    Fault,
    /// Recurse until the stack is used up: a double fault.
    Stack,
    /// Raise a non-maskable interrupt.
    Nmi,
    /// Raise a machine check.
    MachineCheck,
    /// Loop for ever.
    Hang,
    /// On every CPU except the first, behave as if firmware had left a counter on.
    Pmu,
}

impl Failure {
    pub(crate) fn parse(name: &str) -> Option<Failure> {
        Some(match name {
            "panic" => Failure::Panic,
            "fault" => Failure::Fault,
            "stack" => Failure::Stack,
            "nmi" => Failure::Nmi,
            "machine-check" => Failure::MachineCheck,
            "hang" => Failure::Hang,
            "pmu" => Failure::Pmu,
            _ => return None,
        })
    }
}
