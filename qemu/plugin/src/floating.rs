//! Floating-point and vector instructions: what they count, and how long divisions take.

use iced_x86::{Code, CpuidFeature, Instruction, Mnemonic};
use tally_model::{Insn, Signal};

/// Latencies of divisions: those of Ice Lake by uops.info.
pub(crate) fn divider(insn: &mut Insn, raw: &Instruction) {
    let is_wide = is_256(raw);
    let of = |narrow, wide| (if is_wide { wide } else { narrow }, 1);
    let (cycles, uops) = match raw.mnemonic() {
        Mnemonic::Div | Mnemonic::Idiv => match raw.code() {
            Code::Div_rm64 | Code::Idiv_rm64 => (14, 4),
            _ => (6, 4),
        },
        Mnemonic::Divsd | Mnemonic::Divpd | Mnemonic::Vdivsd | Mnemonic::Vdivpd => of(4, 8),
        Mnemonic::Divss | Mnemonic::Divps | Mnemonic::Vdivss | Mnemonic::Vdivps => of(3, 5),
        Mnemonic::Sqrtsd | Mnemonic::Sqrtpd | Mnemonic::Vsqrtsd | Mnemonic::Vsqrtpd => of(6, 12),
        Mnemonic::Sqrtss | Mnemonic::Sqrtps | Mnemonic::Vsqrtss | Mnemonic::Vsqrtps => of(3, 6),
        _ => return,
    };
    insn.divider_cycles = cycles;
    insn.uops = uops;
    insn.add(Signal::Divisions);
}

/// Counts the instruction by its kind of floating-point or vector arithmetic.
pub(crate) fn floating(insn: &mut Insn, raw: &Instruction) {
    let registers = [raw.op0_register(), raw.op1_register()];
    let features = raw.cpuid_features();
    let is_vex = |feature: &CpuidFeature| {
        matches!(feature, CpuidFeature::AVX | CpuidFeature::AVX2 | CpuidFeature::FMA)
    };
    if features.contains(&CpuidFeature::FPU) {
        insn.add(Signal::X87);
    } else if registers.iter().any(|register| register.is_vector_register())
        || features.iter().any(is_vex)
    {
        // VZEROUPPER has no operand.
        insn.add(Signal::Sse);
    }
    if let Some((signal, is_fused)) = arithmetic(raw) {
        insn.add(signal);
        insn.fused = is_fused;
        insn.flops = operations(raw).map(|kind| (kind, elements(signal) << u8::from(is_fused)));
    }
}

/// The number of elements on which an instruction of a signal works.
fn elements(signal: Signal) -> u8 {
    match signal {
        Signal::FpPackedDouble => 2,
        Signal::FpPackedSingle | Signal::FpWideDouble => 4,
        Signal::FpWideSingle => 8,
        _ => 1,
    }
}

/// The signal of an arithmetic instruction's operations: those that AMD's unit masks name. Minima,
/// maxima, approximations and dot products are none of them.
fn operations(raw: &Instruction) -> Option<Signal> {
    if raw.cpuid_features().contains(&CpuidFeature::FMA) {
        return Some(Signal::FlopsFused);
    }
    let (kind, _) = kind_and_elements(raw)?;
    match kind.as_str() {
        "add" | "sub" | "hadd" | "hsub" | "addsub" => Some(Signal::FlopsAdd),
        "mul" => Some(Signal::FlopsMultiply),
        "div" | "sqrt" => Some(Signal::FlopsDivide),
        _ => None,
    }
}

/// Returns whether an instruction works on 256 bits.
fn is_256(raw: &Instruction) -> bool {
    raw.op0_register().is_ymm()
}

/// The signal of an arithmetic instruction of SSE, AVX or FMA, and whether it calculates twice for
/// each element: those that Intel's events of such instructions name.
fn arithmetic(raw: &Instruction) -> Option<(Signal, bool)> {
    if !raw.op0_register().is_vector_register() {
        return None;
    }
    let (kind, elements) = kind_and_elements(raw)?;
    let is_fused = kind == "dp" || raw.cpuid_features().contains(&CpuidFeature::FMA);
    let plain = ["add", "sub", "mul", "div", "sqrt", "min", "max"];
    let others = ["rcp", "rsqrt", "hadd", "hsub", "addsub"];
    if !is_fused && !plain.contains(&kind.as_str()) && !others.contains(&kind.as_str()) {
        return None;
    }
    let signal = match (elements.as_str(), is_256(raw)) {
        ("sd", _) => Signal::FpScalarDouble,
        ("ss", _) => Signal::FpScalarSingle,
        ("pd", false) => Signal::FpPackedDouble,
        ("ps", false) => Signal::FpPackedSingle,
        ("pd", true) => Signal::FpWideDouble,
        ("ps", true) => Signal::FpWideSingle,
        _ => return None,
    };
    Some((signal, is_fused))
}

/// The parts of a mnemonic: the operation without AVX's prefix, and the last two letters, which are
/// the type of the elements in arithmetic.
fn kind_and_elements(raw: &Instruction) -> Option<(String, String)> {
    let mut kind = format!("{:?}", raw.mnemonic()).to_lowercase();
    let elements = kind.split_off(kind.len().checked_sub(2)?);
    Some((kind.strip_prefix('v').unwrap_or(&kind).to_owned(), elements))
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions};

    use super::*;

    fn raw(bytes: &[u8]) -> Instruction {
        Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).decode()
    }

    #[test]
    fn arithmetic_has_the_width_and_the_type_of_its_elements() {
        use Signal::*;
        for (bytes, expected) in [
            (&[0xf2, 0x0f, 0x58, 0xc1][..], Some((FpScalarDouble, false))), // addsd
            (&[0x0f, 0x59, 0xc1], Some((FpPackedSingle, false))),           // mulps
            (&[0xc5, 0xf1, 0x58, 0xc2], Some((FpPackedDouble, false))),     // vaddpd xmm
            (&[0xc5, 0xf5, 0x58, 0xc2], Some((FpWideDouble, false))),       // vaddpd ymm
            (&[0xc5, 0xf4, 0x5d, 0xc2], Some((FpWideSingle, false))),       // vminps ymm
            (&[0xc4, 0xe2, 0xf5, 0xb8, 0xc2], Some((FpWideDouble, true))),  // vfmadd231pd ymm
            (&[0xc4, 0xe2, 0x71, 0xb9, 0xc2], Some((FpScalarSingle, true))), // vfmadd231ss
            (&[0xc4, 0xe2, 0x75, 0xbc, 0xc2], Some((FpWideSingle, true))),  // vfnmadd231ps ymm
            (&[0xc5, 0xf5, 0xfe, 0xc2], None),                              // vpaddd ymm
            (&[0x66, 0x0f, 0x38, 0x3d, 0xc1], None),                        // pmaxsd
            (&[0xc5, 0xfd, 0x10, 0x00], None),                              // vmovupd ymm, [rax]
        ] {
            assert_eq!(arithmetic(&raw(bytes)), expected, "{bytes:x?}");
        }
        let mut insn = Insn::default();
        floating(&mut insn, &raw(&[0xc5, 0xf8, 0x77]));
        assert_eq!(insn.adds, 1 << Sse as u32, "VZEROUPPER");
    }

    #[test]
    fn operations_are_those_of_amd_s_unit_masks() {
        use Signal::*;
        for (bytes, expected) in [
            (&[0xf2, 0x0f, 0x58, 0xc1][..], Some((FlopsAdd, 1))), // addsd
            (&[0x0f, 0x5c, 0xc1], Some((FlopsAdd, 4))),           // subps
            (&[0x66, 0x0f, 0x7c, 0xc1], Some((FlopsAdd, 2))),     // haddpd
            (&[0x0f, 0x59, 0xc1], Some((FlopsMultiply, 4))),      // mulps
            (&[0xc5, 0xf5, 0x5e, 0xc2], Some((FlopsDivide, 4))),  // vdivpd ymm
            (&[0xf3, 0x0f, 0x51, 0xc1], Some((FlopsDivide, 1))),  // sqrtss
            (&[0xc4, 0xe2, 0xf5, 0xb8, 0xc2], Some((FlopsFused, 8))), // vfmadd231pd ymm
            (&[0xc4, 0xe2, 0x75, 0xbc, 0xc2], Some((FlopsFused, 16))), // vfnmadd231ps ymm
            (&[0xc5, 0xf4, 0x5d, 0xc2], None),                    // vminps ymm
            (&[0x0f, 0x53, 0xc1], None),                          // rcpps
            (&[0xc5, 0xf5, 0xfe, 0xc2], None),                    // vpaddd ymm
        ] {
            let mut insn = Insn::default();
            floating(&mut insn, &raw(bytes));
            assert_eq!(insn.flops, expected, "{bytes:x?}");
        }
    }
}
