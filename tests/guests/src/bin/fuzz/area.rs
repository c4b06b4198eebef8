//! Forged areas of extended state, for forged signal frames: XSAVE's format with one part or
//! another that is not as the kernel writes it.

use tally_test_guests::random::Random;

/// Words of the area, which is longer than a processor's.
const WORDS: usize = 512;
/// Bytes of an area with a part for AVX, and of one without.
const SIZES: [u64; 2] = [832, 576];
/// `FP_XSTATE_MAGIC1` and `FP_XSTATE_MAGIC2`.
const MAGIC: u64 = 0x4650_5853;
const END: u64 = 0x4650_5845;

#[repr(C, align(64))]
struct Area([u64; WORDS]);

static mut AREA: Area = Area([0; WORDS]);

/// Makes an area. Returns its address, which may not be aligned.
pub fn forge(random: &mut Random) -> u64 {
    let place = &raw mut AREA;
    // SAFETY: only the first thread comes here, at the end of its calls.
    let area = unsafe { &mut (*place).0 };
    if random.below(2) == 0 {
        area.iter_mut().for_each(|word| *word = random.next());
    }
    let wild = random.next();
    let bytes = random.of(&[SIZES[0], SIZES[1], 575, 4096, wild & 0xfff, wild]);
    let with_end = random.of(&[bytes.wrapping_add(4), bytes, 0, wild]) & 0xffff_ffff;
    let mxcsr = random.of(&[0x1f80, 0x1f80, 0x1f80, 0xffff_ffff, wild & 0xffff_ffff]);
    area[3] = 0x1f80 << 32 | mxcsr;
    area[58] = MAGIC | with_end << 32;
    area[59] = random.of(&[7, 7, 3, 0, u64::MAX, wild]);
    area[60] = bytes & 0xffff_ffff;
    area[64] = random.of(&[7, 7, 3, 4, 0, u64::MAX, wild]);
    area[65] = random.of(&[0, 0, 0, 1 << 63, 1 << 63 | 7, wild]);
    area[66..72].fill(0);
    if random.below(4) == 0 {
        area[66 + random.below(6) as usize] = wild;
    }
    if let Some(word) = area.get_mut((bytes / 8) as usize) {
        *word = random.of(&[END, END, END, wild]);
    }
    place as u64 + random.of(&[0, 0, 0, 0, 8, 16, 2048])
}
