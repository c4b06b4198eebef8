//! A value that threads on any CPU ask one CPU for. The kernel has it behind a lock, and interrupts
//! the CPU that is asked.

/// The value that was asked for last. Every asker gets one that was made after it asked: several
/// may ask before the CPU serves them, and one that takes the value leaves it to the others.
#[derive(Debug)]
pub struct Exchange<T> {
    asked: u64,
    served: u64,
    value: Option<T>,
}

/// What an asker waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(pub u64);

impl<T> Default for Exchange<T> {
    fn default() -> Self {
        Exchange { asked: 0, served: 0, value: None }
    }
}

impl<T: Clone> Exchange<T> {
    /// Asks for the value as it is from here on.
    pub fn ask(&mut self) -> Ticket {
        self.asked += 1;
        Ticket(self.asked)
    }

    /// Returns whether the CPU has to serve.
    pub fn is_asked(&self) -> bool {
        self.served < self.asked
    }

    /// Serves all who have asked; `None` if there is no value.
    pub fn serve(&mut self, value: Option<T>) {
        self.served = self.asked;
        self.value = value;
    }

    /// The value for an asker, or that there is none. `None` if it was not served yet.
    pub fn take(&self, Ticket(asked): Ticket) -> Option<Option<T>> {
        (asked <= self.served).then(|| self.value.clone())
    }
}
