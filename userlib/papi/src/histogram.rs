//! Histograms of the addresses at which thresholds were reached: `PAPI_profil`.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::layout::Histogram;

/// Flags: drop a quarter of the samples, or samples in proportion to a bucket's size; bucket sizes.
pub(crate) const RANDOM: i32 = 0x1;
pub(crate) const COMPRESS: i32 = 0x4;
pub(crate) const BUCKET_16: i32 = 0x8;
pub(crate) const BUCKET_32: i32 = 0x10;
pub(crate) const BUCKET_64: i32 = 0x20;
pub(crate) const BUCKETS: i32 = BUCKET_16 | BUCKET_32 | BUCKET_64;
/// Flags that have no effect: weights, because each sample stands for one threshold; the source of
/// interrupts.
const WEIGHTED: i32 = 0x2;
const FORCE_SOFTWARE: i32 = 0x40;
/// All flags that Tally accepts. It has no registers with addresses of events.
pub(crate) const KNOWN: i32 = RANDOM | WEIGHTED | COMPRESS | BUCKETS | FORCE_SOFTWARE;
/// Special scales: 2 puts all addresses into the first bucket; 65,536 is one bucket per two bytes,
/// and 131,072 two.
const ONE_BUCKET: u32 = 2;
pub(crate) const MAX_SCALE: u32 = 65_536;
pub(crate) const DOUBLE_SCALE: u32 = 131_072;

/// Histograms of one event, owned by the program.
#[derive(Debug)]
pub(crate) struct Histograms {
    pub(crate) first: *const Histogram,
    pub(crate) count: usize,
    pub(crate) flags: i32,
}

// SAFETY: threads take turns on one CPU, and the library uses the pointer while the program keeps
// the histograms there.
unsafe impl Send for Histograms {}

/// Adds a sample, if there are histograms.
pub(crate) fn add(histograms: *const Histograms, address: usize) {
    // SAFETY: it is null, or valid while the set counts (`Overflow::histograms`).
    let Some(of) = (unsafe { histograms.as_ref() }) else { return };
    // SAFETY: the program passed an array of that many, valid while the set has them.
    let all = (0..of.count).map(|index| unsafe { of.first.add(index).read() });
    let below = all.clone().filter(|one| (one.offset as usize) < address);
    let Some(found) = below.max_by_key(|one| one.offset as usize).or(all.clone().next()) else {
        return;
    };
    let offset = found.offset as usize;
    if address < offset {
        return;
    }
    let index = match (offset, found.scale) {
        (0, ONE_BUCKET) => 0,
        (_, scale) => (((address - offset) as u128 * u128::from(scale)) >> 17) as usize,
    };
    match of.flags & BUCKETS {
        BUCKET_32 => increment(&found, index, of.flags, 1_u32),
        BUCKET_64 => increment(&found, index, of.flags, 1_u64),
        _ => increment(&found, index, of.flags, 1_u16),
    }
}

/// Adds `one` to a bucket, if the bucket exists and the flags do not drop the sample.
fn increment<T>(histogram: &Histogram, index: usize, flags: i32, one: T)
where
    T: Copy + Into<u64> + core::ops::Add<Output = T>,
{
    let fits = index.checked_add(1).and_then(|next| next.checked_mul(size_of::<T>()));
    if histogram.base.is_null() || fits.is_none_or(|end| end > histogram.size as usize) {
        return;
    }
    // SAFETY: the program's buffer has `size` bytes, so there is a bucket of this index.
    let bucket = unsafe { histogram.base.cast::<T>().add(index) };
    // SAFETY: as above.
    let value = unsafe { bucket.read_unaligned() };
    let is_left_out = flags & RANDOM != 0 && random() < 1 << 14
        || flags & COMPRESS != 0 && u64::from(random()) < value.into();
    if !is_left_out {
        // SAFETY: as above.
        unsafe { bucket.write_unaligned(value + one) };
    }
}

/// Returns a number of 16 bits, from a sequence that is the same in each run.
fn random() -> u32 {
    static STATE: AtomicU32 = AtomicU32::new(1);
    let next = STATE.load(Relaxed).wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    STATE.store(next, Relaxed);
    next >> 16
}
