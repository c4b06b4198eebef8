//! The return stack: predicts return addresses.

/// A ring of as many return addresses as the processor keeps; further ones overwrite the oldest.
#[derive(Clone, Debug)]
pub(super) struct ReturnStack {
    addresses: Box<[u64]>,
    top: usize,
}

impl ReturnStack {
    pub(super) fn new(entries: u8) -> ReturnStack {
        ReturnStack { addresses: vec![0; usize::from(entries.max(1))].into_boxed_slice(), top: 0 }
    }

    /// Pushes an address, over the oldest if the stack is full.
    #[inline]
    pub(super) fn push(&mut self, address: u64) {
        self.top = if self.top + 1 == self.addresses.len() { 0 } else { self.top + 1 };
        self.addresses[self.top] = address;
    }

    /// Pops the newest address.
    #[inline]
    pub(super) fn pop(&mut self) -> u64 {
        let newest = self.addresses[self.top];
        self.top = if self.top == 0 { self.addresses.len() - 1 } else { self.top - 1 };
        newest
    }

    /// Copies another stack of the same depth.
    pub(super) fn copy_from(&mut self, other: &ReturnStack) {
        self.addresses.copy_from_slice(&other.addresses);
        self.top = other.top;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_match_calls_to_the_stack_depth() {
        for depth in [22, 32] {
            let mut returns = ReturnStack::new(depth);
            (0..u64::from(depth)).for_each(|pc| returns.push(pc + 1));
            let wrong = (0..u64::from(depth)).rev().filter(|pc| returns.pop() != pc + 1).count();
            assert_eq!(wrong, 0);
            assert_ne!(returns.pop(), 7);
        }
    }

    #[test]
    fn calls_deeper_than_the_stack_overwrite_the_oldest() {
        let mut returns = ReturnStack::new(16);
        (0..20).for_each(|pc| returns.push(pc + 1));
        let wrong = (0..20).rev().filter(|pc| returns.pop() != pc + 1).count();
        assert_eq!(wrong, 4);
    }
}
