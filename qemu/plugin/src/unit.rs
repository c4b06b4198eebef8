//! The functional unit that executes an instruction, and the branches that fuse with it.

use iced_x86::{ConditionCode, CpuidFeature, Instruction, Mnemonic, OpKind};
use tally_model::Unit;

/// The unit of an instruction, its loads and stores aside.
pub(crate) fn of(raw: &Instruction) -> Unit {
    use Mnemonic::*;
    match raw.mnemonic() {
        Mov if is_between_registers(raw) => Unit::Move,
        Mov | Movaps | Movups | Movdqa | Movdqu | Movapd | Movupd | Vmovaps | Vmovups | Vmovdqa
        | Vmovdqu | Vmovapd | Vmovupd | Vzeroupper | Vzeroall | Push | Pop | Nop | Endbr64
        | Prefetcht0 | Prefetcht1 | Prefetcht2 | Prefetchnta | Prefetchw => Unit::None,
        Movss | Movsd | Movd | Movq | Movzx | Movsx | Movsxd | Movbe | Movntdq | Movnti
        | Vmovss | Vmovsd | Vmovd | Vmovq | Vmovntdq | Vmovntps | Vmovntpd | Vlddqu
        | Vbroadcastss | Vbroadcastsd | Vbroadcastf128 | Vbroadcasti128 | Vpbroadcastd
        | Vpbroadcastq
            if touches_memory(raw) =>
        {
            Unit::None
        }
        Xor | Sub | Pxor | Xorps | Xorpd if is_zeroing(raw) => Unit::None,
        Vpxor | Vxorps | Vxorpd if is_zeroing_vex(raw) => Unit::None,
        Movd | Movq | Vmovd | Vmovq => Unit::Shuffle,
        Shl | Shr | Sar | Sal | Rol | Ror | Rcl | Rcr | Shld | Shrd | Shlx | Shrx | Sarx | Rorx => {
            Unit::Shift
        }
        Imul | Mul | Mulx | Popcnt | Lzcnt | Tzcnt | Bsf | Bsr | Crc32 | Pdep | Pext => {
            Unit::Multiply
        }
        Div | Idiv => Unit::Divide,
        mnemonic => vector_unit(mnemonic).unwrap_or_else(|| unit_by_operands(raw)),
    }
}

/// The unit of a floating-point or vector instruction that has a special unit.
fn vector_unit(mnemonic: Mnemonic) -> Option<Unit> {
    use Mnemonic::*;
    Some(match mnemonic {
        Divss | Divps | Divsd | Divpd | Sqrtss | Sqrtps | Sqrtsd | Sqrtpd | Vdivss | Vdivps
        | Vdivsd | Vdivpd | Vsqrtss | Vsqrtps | Vsqrtsd | Vsqrtpd | Fdiv | Fdivp | Fsqrt => {
            Unit::FpDivide
        }
        Addss | Addsd | Addps | Addpd | Subss | Subsd | Subps | Subpd | Minss | Minsd | Minps
        | Minpd | Maxss | Maxsd | Maxps | Maxpd | Comiss | Comisd | Ucomiss | Ucomisd | Cmpps
        | Cmppd | Vaddss | Vaddsd | Vaddps | Vaddpd | Vsubss | Vsubsd | Vsubps | Vsubpd
        | Vaddsubps | Vaddsubpd | Vminss | Vminsd | Vminps | Vminpd | Vmaxss | Vmaxsd | Vmaxps
        | Vmaxpd | Vcomiss | Vcomisd | Vucomiss | Vucomisd | Vcmpss | Vcmpsd | Vcmpps | Vcmppd => {
            Unit::FpAdd
        }
        Mulss | Mulsd | Mulps | Mulpd | Vmulss | Vmulsd | Vmulps | Vmulpd | Pmulld | Pmullw
        | Pmuludq | Pmaddwd | Pclmulqdq | Aesenc | Aesdec | Vpmulld | Vpmullw | Vpmuludq
        | Vpmuldq | Vpmulhw | Vpmulhuw | Vpmaddwd | Vpmaddubsw | Vpclmulqdq | Vaesenc | Vaesdec => {
            Unit::FpMultiply
        }
        Vcvtsi2sd | Vcvtsi2ss | Vcvttsd2si | Vcvttss2si | Vcvtsd2si | Vcvtss2si | Vcvtsd2ss
        | Vcvtss2sd | Vcvtdq2ps | Vcvtdq2pd | Vcvttps2dq | Vcvttpd2dq | Vcvtps2dq | Vcvtpd2dq
        | Vcvtps2pd | Vcvtpd2ps | Vcvtph2ps | Vcvtps2ph | Cvtsi2sd | Cvtsi2ss | Cvttsd2si
        | Cvttss2si | Cvtsd2si | Cvtss2si | Cvtsd2ss | Cvtss2sd | Cvtdq2ps | Cvtdq2pd
        | Cvttps2dq => Unit::Convert,
        Pshufd | Pshufb | Pshuflw | Pshufhw | Shufps | Shufpd | Punpcklbw | Punpcklwd
        | Punpckldq | Punpcklqdq | Punpckhbw | Punpckhwd | Punpckhdq | Punpckhqdq | Palignr
        | Pslldq | Psrldq | Pmovmskb | Movmskps | Movmskpd | Vpshufd | Vpshufb | Vpshuflw
        | Vpshufhw | Vshufps | Vshufpd | Vpunpcklbw | Vpunpcklwd | Vpunpckldq | Vpunpcklqdq
        | Vpunpckhbw | Vpunpckhwd | Vpunpckhdq | Vpunpckhqdq | Vunpcklps | Vunpcklpd
        | Vunpckhps | Vunpckhpd | Vpalignr | Vpslldq | Vpsrldq | Vpmovmskb | Vmovmskps
        | Vmovmskpd | Vbroadcastss | Vbroadcastsd | Vpbroadcastb | Vpbroadcastw | Vpbroadcastd
        | Vpbroadcastq | Vperm2f128 | Vperm2i128 | Vpermd | Vpermps | Vpermq | Vpermpd
        | Vpermilps | Vpermilpd | Vextractf128 | Vextracti128 | Vinsertf128 | Vinserti128
        | Vmovddup | Vmovshdup | Vmovsldup => Unit::Shuffle,
        _ => return None,
    })
}

/// The unit of any other instruction, by its kind and its operands.
fn unit_by_operands(raw: &Instruction) -> Unit {
    let is_fp = |feature: &CpuidFeature| matches!(feature, CpuidFeature::FPU | CpuidFeature::FMA);
    let operands = [raw.op0_register(), raw.op1_register()];
    if raw.flow_control() != iced_x86::FlowControl::Next {
        Unit::Branch
    } else if raw.cpuid_features().iter().any(is_fp) {
        Unit::FpMultiply
    } else if operands.iter().any(|operand| operand.is_vector_register()) {
        Unit::Vector
    } else {
        Unit::Integer
    }
}

fn is_between_registers(raw: &Instruction) -> bool {
    let general = |register: iced_x86::Register| register.is_gpr32() || register.is_gpr64();
    raw.op1_kind() == OpKind::Register && general(raw.op0_register()) && general(raw.op1_register())
}

fn touches_memory(raw: &Instruction) -> bool {
    (0..raw.op_count()).any(|operand| raw.op_kind(operand) == OpKind::Memory)
}

fn is_zeroing(raw: &Instruction) -> bool {
    raw.op1_kind() == OpKind::Register && raw.op0_register() == raw.op1_register()
}

/// Returns whether an instruction with two operands beside its result zeroes it.
fn is_zeroing_vex(raw: &Instruction) -> bool {
    raw.op2_kind() == OpKind::Register && raw.op1_register() == raw.op2_register()
}

/// The bit of a conditional branch's condition.
pub(crate) fn condition(raw: &Instruction) -> u16 {
    match raw.condition_code() {
        code if code != ConditionCode::None && raw.is_jcc_short_or_near() => 1 << (code as u16 - 1),
        _ => 0,
    }
}

/// The conditions of the branches that fuse with the instruction before them (Intel's Optimization
/// Reference Manual, "Macro-Fusion", used for AMD's profiles too): tests of the carry, zero, and
/// sign-against-overflow flags, if the instruction sets those flags.
pub(crate) fn fuses_with(raw: &Instruction) -> u16 {
    const ALL: u16 = 0xffff;
    // Conditions: below, not below, equal, not equal, below or equal, above; less and the other
    // three.
    const CARRY_OR_ZERO: u16 = 0b1111_1100;
    const SIGNED: u16 = 0xf000;
    const ZERO: u16 = 0b0011_0000;
    let immediate_and_memory = touches_memory(raw)
        && (0..raw.op_count()).any(|operand| raw.op_kind(operand) >= OpKind::Immediate8);
    // Neither an instruction that writes memory nor a comparison of memory with an immediate fuses.
    let writes_memory = raw.op0_kind() == OpKind::Memory;
    match raw.mnemonic() {
        _ if immediate_and_memory && raw.op_count() > 1 => 0,
        Mnemonic::Test => ALL,
        Mnemonic::Cmp => CARRY_OR_ZERO | SIGNED,
        _ if writes_memory => 0,
        Mnemonic::And => ALL,
        Mnemonic::Add | Mnemonic::Sub => CARRY_OR_ZERO | SIGNED,
        Mnemonic::Inc | Mnemonic::Dec => ZERO | SIGNED,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions};

    use super::*;

    fn raw(bytes: &[u8]) -> Instruction {
        Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).decode()
    }

    #[test]
    fn instructions_have_their_units() {
        for (bytes, unit) in [
            (&[0x48, 0x01, 0xd8][..], Unit::Integer),
            (&[0x48, 0x89, 0xd8], Unit::Move),
            (&[0x48, 0x8b, 0x03], Unit::None),
            (&[0x31, 0xc0], Unit::None),
            (&[0x31, 0xd8], Unit::Integer),
            (&[0x48, 0x0f, 0xaf, 0xc3], Unit::Multiply),
            (&[0x48, 0xf7, 0xf3], Unit::Divide),
            (&[0xf2, 0x0f, 0x58, 0xc1], Unit::FpAdd),
            (&[0xf2, 0x0f, 0x59, 0xc1], Unit::FpMultiply),
            (&[0xc4, 0xe2, 0xf1, 0xb8, 0xc2], Unit::FpMultiply),
            // VADDPD, VMULPS, VPXOR and VPERMQ of YMM registers; a load of one.
            (&[0xc5, 0xf5, 0x58, 0xc2], Unit::FpAdd),
            (&[0xc5, 0xf4, 0x59, 0xc2], Unit::FpMultiply),
            (&[0xc5, 0xf5, 0xef, 0xc2], Unit::Vector),
            (&[0xc5, 0xf5, 0xef, 0xc1], Unit::None),
            (&[0xc4, 0xe3, 0xfd, 0x00, 0xc1, 0x1b], Unit::Shuffle),
            (&[0xc5, 0xfd, 0x10, 0x00], Unit::None),
            (&[0x75, 0x00], Unit::Branch),
            (&[0xc3], Unit::Branch),
        ] {
            assert_eq!(of(&raw(bytes)), unit, "{bytes:x?}");
        }
    }

    #[test]
    fn branches_fuse_with_instructions_that_set_their_flags() {
        // cmp eax, ebx; test eax, eax; inc eax; cmp dword [rax], 1; mov eax, ebx
        let heads: [&[u8]; 5] =
            [&[0x39, 0xd8], &[0x85, 0xc0], &[0xff, 0xc0], &[0x83, 0x38, 1], &[0x89, 0xd8]];
        for (branch, expected) in [
            // jne, js, jb, jl
            (0x75, [true, true, true, false, false]),
            (0x78, [false, true, false, false, false]),
            (0x72, [true, true, false, false, false]),
            (0x7c, [true, true, true, false, false]),
        ] {
            let condition = condition(&raw(&[branch, 0]));
            let found = heads.map(|head| fuses_with(&raw(head)) & condition != 0);
            assert_eq!(found, expected, "{branch:x}");
        }
        assert_eq!(condition(&raw(&[0xeb, 0])), 0);
    }
}
