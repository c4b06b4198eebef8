//! Stubs by which a dynamic file calls the functions of others: its procedure linkage table.

use std::{collections::BTreeMap, ops::Range};

use iced_x86::{Decoder, DecoderOptions, Mnemonic};
use object::{Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, RelocationTarget};

/// The stubs of a file, each with the symbol of the function that it jumps to. A stub has no
/// symbol: it jumps to the address in a slot, into which the loader writes that of the slot's
/// symbol.
pub(super) fn stubs<'a>(file: &'a object::File<'_>) -> Vec<(Range<u64>, &'a str)> {
    let slots = slots(file);
    let sections = file.sections().filter(|of| of.name().is_ok_and(|of| of.starts_with(".plt")));
    let mut found = Vec::new();
    for section in sections {
        let (start, bytes) = (section.address(), section.data().unwrap_or_default());
        // Entries of `.plt.got` have eight bytes without marks of branch targets.
        let size = section.align().clamp(8, 16);
        for code in Decoder::with_ip(64, bytes, start, DecoderOptions::NONE) {
            let is_jump = code.mnemonic() == Mnemonic::Jmp && code.is_ip_rel_memory_operand();
            let slot = is_jump.then(|| code.ip_rel_memory_address());
            if let Some(name) = slot.and_then(|slot| slots.get(&slot)) {
                let entry = code.ip() - (code.ip() - start) % size;
                found.push((entry..entry + size, *name));
            }
        }
    }
    found
}

/// The addresses of slots that the loader fills, with the symbols of what it writes.
fn slots<'a>(file: &'a object::File<'_>) -> BTreeMap<u64, &'a str> {
    let symbols = file.dynamic_symbol_table();
    let relocations = file.dynamic_relocations().into_iter().flatten();
    let slot = |(address, of): (u64, object::Relocation)| {
        let RelocationTarget::Symbol(index) = of.target() else { return None };
        let symbol = symbols.as_ref()?.symbol_by_index(index).ok()?;
        Some((address, symbol.name().ok().filter(|name| !name.is_empty())?))
    };
    relocations.filter_map(slot).collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const SOURCE: &str = "#include <stdlib.h>\nint main(int n, char **v) { free(malloc(n)); }\n";

    /// Both kinds of table: with the lazy one, and with slots that are filled at the start.
    #[test]
    fn stubs_are_those_of_the_functions_that_are_called() {
        let folder = std::env::temp_dir().join(format!("tally-stubs-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("stubs.c"), SOURCE).unwrap();
        for option in ["-Wl,-z,lazy", "-Wl,-z,now"] {
            let words = ["-O0", "-fno-builtin", option, "-o", "stubs", "stubs.c"];
            let made = Command::new("cc").args(words).current_dir(&folder).status().unwrap();
            assert!(made.success());
            let bytes = std::fs::read(folder.join("stubs")).unwrap();
            let file = object::File::parse(&*bytes).unwrap();
            let main = file.symbols().find(|of| of.name() == Ok("main")).unwrap();
            let code = file.section_by_name(".text").unwrap();
            let code = code.data_range(main.address(), main.size()).unwrap().unwrap();
            let calls = Decoder::with_ip(64, code, main.address(), DecoderOptions::NONE);
            let calls = calls.into_iter().filter(|of| of.mnemonic() == Mnemonic::Call);
            let stubs = stubs(&file);
            let name = |at: u64| stubs.iter().find(|(of, _)| of.start == at).map(|(_, name)| *name);
            let called: Vec<_> = calls.map(|of| name(of.near_branch_target())).collect();
            assert_eq!(called, [Some("malloc"), Some("free")], "{option}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
