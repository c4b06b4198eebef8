//! The kernel's driver on the virtual unit: logical counters by the catalogue's names, all exact at
//! the same time.

use std::{cell::RefCell, rc::Rc};

use tally_pmu::{
    Bus, Catalogue, CounterUnit, UNIT_COUNTERS, UnitCounter, UnitError,
    registers::unit::{SignalMode, UnitConfig},
};
use tally_vpmu::{Profile, Vendor};

use crate::machine::{Machine, Selected, profiles};

/// The registers of a CPU, shared with the test that runs it.
struct Registers(Rc<RefCell<Machine>>);

impl Bus for Registers {
    fn read(&mut self, msr: u32) -> u64 {
        self.0.borrow_mut().read(msr)
    }
    fn write(&mut self, msr: u32, value: u64) {
        self.0.borrow_mut().write(msr, value);
    }
    fn try_read(&mut self, msr: u32) -> Option<u64> {
        Some(self.read(msr))
    }

    fn try_write(&mut self, msr: u32, value: u64) -> bool {
        self.write(msr, value);
        true
    }

    fn rdpmc(&mut self, index: u32) -> u64 {
        self.0.borrow_mut().rdpmc(index)
    }
}

/// A CPU with its driver.
struct Driven {
    machine: Rc<RefCell<Machine>>,
    unit: CounterUnit<Registers>,
    catalogue: Catalogue,
    inputs: Vec<Selected>,
}

impl Driven {
    fn new(profile: Profile, seed: u64) -> Driven {
        let machine = Rc::new(RefCell::new(Machine::new(profile, seed)));
        let unit = CounterUnit::new(Registers(machine.clone())).expect("the unit that it knows");
        let model = (profile.signature >> 4 & 0xf | profile.signature >> 12 & 0xf0) as u8;
        let catalogue = match profile.vendor {
            Vendor::Intel => Catalogue::intel(6, model, profile.signature as u8 & 0xf, 0),
            Vendor::Amd => Catalogue::amd(0x19, model),
        };
        Driven { machine, unit, catalogue, inputs: Selected::all(&profile) }
    }

    /// The configuration of an event by its name, in both rings.
    fn config(&self, name: &str) -> UnitConfig {
        let events = self.catalogue.resolve(name, tally_abi::Mode::Full);
        let events = events.unwrap_or_else(|error| panic!("{name}: {error}"));
        self.catalogue.on_unit(&events[0]).unwrap_or_else(|| panic!("{name} is not on the unit"))
    }

    /// The events that the vendor's table lists, in both rings, each with its number of
    /// occurrences.
    fn listed(&self) -> Vec<(String, u64)> {
        let in_both = self.inputs.iter().filter(|input| input.is_plain());
        let listed = in_both.filter(|input| self.catalogue.find(input.name()).is_some());
        let machine = self.machine.borrow();
        listed.map(|input| (input.name().to_owned(), machine.sum(input))).collect()
    }

    fn run(&self, instructions: usize) {
        self.machine.borrow_mut().run(instructions, |_| false);
    }
}

/// All events of every profile count exactly at once, each in a logical counter without
/// multiplexing.
#[test]
fn every_event_has_a_counter_and_counts_exactly() {
    for profile in profiles() {
        let mut driven = Driven::new(profile, 11);
        let counters: Vec<(String, UnitCounter)> = driven
            .listed()
            .into_iter()
            .map(|(name, _)| {
                let config = driven.config(&name);
                let counter = driven.unit.add(config);
                (name.clone(), counter.unwrap_or_else(|error| panic!("{name}: {error}")))
            })
            .collect();
        assert!(counters.len() > 40);
        driven.run(3_000);
        let before = driven.listed();
        let accesses = driven.unit.msr_accesses();
        driven.unit.start();
        driven.run(30_000);
        driven.unit.stop();
        assert_eq!(driven.unit.msr_accesses() - accesses, 2);
        let after = driven.listed();
        driven.run(1_000);
        for (((name, counter), before), after) in counters.iter().zip(before).zip(after) {
            assert_eq!(driven.unit.read(*counter), after.1 - before.1, "{name}");
        }
    }
}

#[test]
fn what_the_unit_does_not_have_is_refused_and_takes_no_counter() {
    let mut driven = Driven::new(profiles()[0], 12);
    let instructions = driven.config("INST_RETIRED.ANY");
    let level = instructions.with_mode(SignalMode::LevelLow);
    assert_eq!(driven.unit.add(level), Err(UnitError::NotSupported));
    let divider = driven.config("ARITH.DIVIDER_ACTIVE").with_mode(SignalMode::EdgeRising);
    let stalls = driven.config("CYCLE_ACTIVITY.STALLS_MEM_ANY").with_mode(SignalMode::LevelLow);
    assert!(driven.unit.add(divider).is_ok() && driven.unit.add(stalls).is_ok());
    for _ in 2..UNIT_COUNTERS {
        assert!(driven.unit.add(instructions).is_ok());
    }
    assert_eq!(driven.unit.add(instructions), Err(UnitError::Full));
    driven.unit.clear();
    assert!(driven.unit.add(instructions).is_ok_and(|counter| counter.rdpmc() == 0x4f00_0100));
    let offcore = driven.catalogue.resolve("OCR.DEMAND_DATA_RD.DRAM", tally_abi::Mode::User);
    assert_eq!(driven.catalogue.on_unit(&offcore.expect("a name")[0]), None);
}

#[test]
fn thresholds_fire_at_logical_counts_and_leave_the_count_as_it_is() {
    for profile in profiles() {
        let mut driven = Driven::new(profile, 13);
        let (name, _) = driven.listed().swap_remove(0);
        let config = driven.config(&name);
        let counter = driven.unit.add(config).expect("a counter");
        driven.unit.start();
        let count = |driven: &mut Driven| driven.unit.read(counter);
        let mut thresholds = [1, 4_095, 4_096, 4_097, 8_192, 20_000].into_iter().peekable();
        let mut armed = None;
        while thresholds.peek().is_some() || armed.is_some() {
            let is_due = armed.is_some_and(|threshold| count(&mut driven) >= threshold);
            let fired = driven.unit.take_fired();
            assert_eq!(fired, is_due.then_some(counter), "{name}, {armed:?}");
            armed = if is_due { None } else { armed };
            if armed.is_none()
                && let Some(threshold) = thresholds.next()
            {
                let now = count(&mut driven);
                match driven.unit.set_threshold(counter, threshold) {
                    Ok(()) => armed = Some(threshold),
                    Err(error) => {
                        assert_eq!(error, UnitError::Passed { threshold, count: now });
                        assert!(now >= threshold);
                    }
                }
                assert_eq!(count(&mut driven), now, "{name}");
            }
            driven.run(1);
        }
        assert!(count(&mut driven) >= 20_000);
        assert_eq!(driven.listed()[0].1, count(&mut driven));
    }
}
