//! Issue ports, and the cycles in which they are in use.
//!
//! Instructions come in program order but issue in any order, so each cycle of a window has a mask
//! of the ports in use. The window is long compared with what a scheduler holds. An instruction
//! beyond it (behind a chain of misses longer than the window) issues without a check.

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

#[derive(Clone, Debug)]
pub(super) struct Ports {
    /// In the upper bits the cycle, in the lower the ports in use.
    taken: Box<[u64; WINDOW]>,
    /// By the lowest port of a mask, a range that need not be searched again.
    full: [Full; PORTS as usize],
}

impl Ports {
    pub(super) fn new() -> Ports {
        Ports { taken: Box::new([0; WINDOW]), full: Default::default() }
    }

    /// Takes one of `ports` in the first cycle from `earliest` on with a free one; returns the
    /// cycle.
    #[inline]
    pub(super) fn issue(&mut self, ports: u16, earliest: u64) -> u64 {
        let memo = (ports.trailing_zeros() % PORTS) as usize;
        let full = self.full[memo];
        let known = full.ports == ports && (full.from..full.to).contains(&earliest);
        let mut cycle = if known { full.to } else { earliest };
        loop {
            let entry = &mut self.taken[cycle as usize & (WINDOW - 1)];
            let held = *entry >> PORTS;
            if held > cycle {
                return cycle;
            }
            let taken = if held == cycle { *entry as u16 } else { 0 };
            let free = ports & !taken;
            if free != 0 {
                let port = free & free.wrapping_neg();
                *entry = cycle << PORTS | u64::from(taken | port);
                break;
            }
            cycle += 1;
        }
        if cycle > earliest {
            let from = if known { full.from } else { earliest };
            self.full[memo] = Full { ports, from, to: cycle };
        }
        cycle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_port_serves_once_a_cycle() {
        let mut ports = Ports::new();
        let cycles: Vec<_> = (0..7).map(|_| ports.issue(0b1011, 100)).collect();
        assert_eq!(cycles, [100, 100, 100, 101, 101, 101, 102]);
        assert_eq!(ports.issue(0b100, 100), 100);
        assert_eq!(ports.issue(0b1, 99), 99);
        assert_eq!(ports.issue(0b1, 100), 103);
    }

    #[test]
    fn only_a_full_range_is_skipped() {
        let mut ports = Ports::new();
        (0..50).for_each(|_| _ = ports.issue(1, 10));
        assert_eq!(ports.issue(1, 20), 60);
        assert_eq!(ports.issue(1, 5), 5);
        assert_eq!(ports.issue(1, 5), 6);
        assert_eq!(ports.issue(1, 59), 61);
    }

    #[test]
    fn it_agrees_with_a_set_of_used_ports() {
        let mut ports = Ports::new();
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
            assert_eq!(ports.issue(mask, earliest), expected.0);
        }
    }
}
