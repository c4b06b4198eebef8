//! QEMU's own command line. The plugin interface does not pass on its options.

/// The values of an option of QEMU's own command line.
fn values_of<'a>(arguments: &'a [String], names: &[&str]) -> impl Iterator<Item = &'a str> {
    let pairs = arguments.windows(2).filter(|pair| names.contains(&pair[0].as_str()));
    pairs.map(|pair| pair[1].as_str())
}

/// Returns whether QEMU's command line makes it count instructions.
pub(crate) fn counts_instructions(arguments: &[String]) -> bool {
    values_of(arguments, &["-icount", "--icount"]).any(|value| value != "off")
}

/// The binary logarithm of the nanoseconds of an instruction, if QEMU counts instructions.
pub(crate) fn instruction_shift(arguments: &[String]) -> Option<u32> {
    let value = values_of(arguments, &["-icount", "--icount"]).find(|value| *value != "off")?;
    let shift = value.split(',').find_map(|part| part.strip_prefix("shift="));
    Some(shift.and_then(|shift| shift.parse().ok()).unwrap_or(0))
}

/// Checks that the plugin supports QEMU's own command line.
pub(crate) fn check_machine(arguments: &[String], max_vcpus: usize) -> Result<(), String> {
    let accelerators: Vec<&str> = values_of(arguments, &["-accel", "--accel"]).collect();
    let by_machine = values_of(arguments, &["-machine", "--machine", "-M"])
        .flat_map(|machine| machine.split(','))
        .filter_map(|part| part.strip_prefix("accel="));
    let enabled = arguments.iter().any(|argument| argument.ends_with("-enable-kvm"));
    let mut all = accelerators.iter().copied().chain(by_machine);
    if enabled || all.any(|accelerator| !accelerator.starts_with("tcg")) {
        return Err("the virtual PMU counts only under TCG: use -accel tcg".to_owned());
    }
    if max_vcpus == 1 {
        return Ok(());
    }
    if counts_instructions(arguments) {
        return Err("with -icount QEMU passes wrong CPU numbers to plugins: use -smp 1".to_owned());
    }
    if accelerators.iter().any(|accelerator| accelerator.contains("thread=single")) {
        return Err(
            "with thread=single QEMU passes wrong CPU numbers to plugins: use -smp 1".to_owned()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsupported_machines_are_refused() {
        let check = |line: &str, vcpus| {
            let arguments: Vec<_> = line.split(' ').map(str::to_owned).collect();
            check_machine(&arguments, vcpus)
        };
        assert_eq!(check("qemu -accel tcg -icount shift=0 -smp 1", 1), Ok(()));
        assert_eq!(check("qemu -accel tcg,thread=multi -smp 4", 4), Ok(()));
        assert!(check("qemu -icount shift=0", 2).is_err());
        assert!(check("qemu -accel tcg,thread=single", 2).is_err());
        assert!(check("qemu -accel kvm", 1).is_err());
        assert!(check("qemu -enable-kvm", 1).is_err());
        assert!(check("qemu -machine q35,accel=kvm:tcg", 1).is_err());
        assert!(check("qemu -machine pc -M q35,accel=hvf", 1).is_err());
        assert!(check("qemu -accel kvm -accel tcg", 1).is_err());
        assert_eq!(check("qemu -machine pc,accel=tcg", 1), Ok(()));
    }

    #[test]
    fn instructions_take_a_power_of_two_nanoseconds() {
        let shift =
            |line: &str| instruction_shift(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(shift("qemu -icount shift=3,sleep=off"), Some(3));
        assert_eq!(shift("qemu -icount auto"), Some(0));
        assert_eq!(shift("qemu -icount off"), None);
    }
}
