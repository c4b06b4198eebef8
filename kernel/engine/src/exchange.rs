//! A value that threads on any CPU request from one CPU. The kernel keeps it behind a lock, and
//! interrupts the CPU that has to serve the request.

/// The last served value. Each requester gets a value made after its request: several may request
/// before the CPU serves them, and taking the value leaves it for the others.
#[derive(Debug)]
pub struct Exchange<T> {
    asked: u64,
    served: u64,
    value: Option<T>,
}

/// A requester's place in the order of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(pub u64);

impl<T> Default for Exchange<T> {
    fn default() -> Self {
        Exchange { asked: 0, served: 0, value: None }
    }
}

impl<T: Clone> Exchange<T> {
    /// Requests a value made from now on.
    pub fn ask(&mut self) -> Ticket {
        self.asked += 1;
        Ticket(self.asked)
    }

    /// Returns whether the CPU has a request to serve.
    pub fn is_asked(&self) -> bool {
        self.served < self.asked
    }

    /// Serves all requests; `None` if there is no value.
    pub fn serve(&mut self, value: Option<T>) {
        self.served = self.asked;
        self.value = value;
    }

    /// The value for a request, `Some(None)` if there is none. `None` if the request is not served
    /// yet.
    pub fn take(&self, Ticket(asked): Ticket) -> Option<Option<T>> {
        (asked <= self.served).then(|| self.value.clone())
    }
}
