//! Issue ports, and the cycles in which they are in use.
//!
//! Instructions arrive in program order but issue in any order, so each cycle of a window has a
//! mask of the ports in use. The window is long compared with what a scheduler holds. An
//! instruction beyond it (behind a chain of misses longer than the window) issues without a check.

/// Cycles of the window, a power of two.
const WINDOW: usize = 1 << 12;
const PORTS: u32 = 16;

/// A range of cycles in which no port of a mask is free.
#[derive(Clone, Copy, Debug, Default)]
struct Full {
    ports: u16,
    from: u64,
    to: u64,
}

/// Value of [`Issued::place`] if the number of micro-operations in the cycle is not known.
const LAST: u8 = u8::MAX;

/// Cycle and port in which a micro-operation executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Issued {
    pub(super) cycle: u64,
    /// The number of its port.
    pub(super) port: u8,
    /// Ordinal among the micro-operations that execute in the cycle, from 1; 0 if the window does
    /// not have the cycle any more, [`LAST`] if they are not counted.
    pub(super) place: u8,
    /// The cycles in which the micro-operation waited for a port, first and end, without those of a
    /// range in which others are known to have waited.
    pub(super) waited: (u64, u64),
}

#[derive(Clone, Debug)]
pub(super) struct Ports {
    /// An entry per cycle: the cycle in the upper bits, the ports in use in the lower.
    taken: Box<[u64; WINDOW]>,
    /// Per lowest port of a mask: a range that need not be searched again.
    full: [Full; PORTS as usize],
    /// Whether a port is always free.
    are_endless: bool,
}

impl Ports {
    pub(super) fn new(are_endless: bool) -> Ports {
        Ports { taken: Box::new([0; WINDOW]), full: Default::default(), are_endless }
    }

    /// Takes one of `ports` in the first cycle from `earliest` on with a free one.
    #[inline]
    pub(super) fn issue(&mut self, ports: u16, earliest: u64) -> Issued {
        if self.are_endless {
            let port = ports.trailing_zeros() as u8;
            return Issued { cycle: earliest, port, place: LAST, waited: (earliest, earliest) };
        }
        let memo = (ports.trailing_zeros() % PORTS) as usize;
        let full = self.full[memo];
        let known = full.ports == ports && (full.from..full.to).contains(&earliest);
        // In a range that is known to be full, others waited already.
        let searched = if known { full.to } else { earliest };
        let mut issued =
            Issued { cycle: searched, port: 0, place: 0, waited: (searched, searched) };
        loop {
            let cycle = issued.cycle;
            let entry = &mut self.taken[cycle as usize & (WINDOW - 1)];
            let held = *entry >> PORTS;
            if held > cycle {
                issued.port = ports.trailing_zeros() as u8;
                return issued;
            }
            let taken = if held == cycle { *entry as u16 } else { 0 };
            let free = ports & !taken;
            if free != 0 {
                let taken = taken | free & free.wrapping_neg();
                *entry = cycle << PORTS | u64::from(taken);
                issued.port = free.trailing_zeros() as u8;
                issued.place = taken.count_ones() as u8;
                break;
            }
            issued.cycle += 1;
            issued.waited.1 = issued.cycle;
        }
        if issued.cycle > earliest {
            let from = if known { full.from } else { earliest };
            self.full[memo] = Full { ports, from, to: issued.cycle };
        }
        issued
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_port_serves_once_a_cycle() {
        let mut ports = Ports::new(false);
        let cycles: Vec<_> = (0..7).map(|_| ports.issue(0b1011, 100).cycle).collect();
        assert_eq!(cycles, [100, 100, 100, 101, 101, 101, 102]);
        assert_eq!(ports.issue(0b100, 100).cycle, 100);
        assert_eq!(ports.issue(0b1, 99).cycle, 99);
        assert_eq!(ports.issue(0b1, 100).cycle, 103);
    }

    #[test]
    fn only_a_full_range_is_skipped() {
        let mut ports = Ports::new(false);
        (0..50).for_each(|_| _ = ports.issue(1, 10));
        assert_eq!(ports.issue(1, 20).cycle, 60);
        assert_eq!(ports.issue(1, 5).cycle, 5);
        assert_eq!(ports.issue(1, 5).cycle, 6);
        assert_eq!(ports.issue(1, 59).cycle, 61);
    }

    #[test]
    fn it_agrees_with_a_set_of_used_ports() {
        let mut ports = Ports::new(false);
        let mut list = std::collections::BTreeSet::new();
        let mut state = 3u64;
        for round in 0..5_000u64 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let mask = [0b1, 0b11, 0b110, 0b1110][(state >> 62) as usize];
            let earliest = round / 2 + (state >> 40) % 64;
            let expected = (earliest..)
                .find_map(|cycle| {
                    let port = (0..4)
                        .find(|port| mask >> port & 1 == 1 && !list.contains(&(cycle, *port)))?;
                    Some((cycle, port))
                })
                .expect("there is always a later cycle");
            list.insert(expected);
            let issued = ports.issue(mask, earliest);
            assert_eq!((issued.cycle, u32::from(issued.port)), expected);
        }
    }
}
