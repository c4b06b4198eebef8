//! Work on several threads that steal from each other, by rayon.

use rayon::prelude::*;

fn main() {
    rayon::ThreadPoolBuilder::new().num_threads(4).build_global().unwrap();
    let sum: u64 = (0..200_000_u64).into_par_iter().map(|n| n * n % 7).sum();
    let mut numbers: Vec<u64> = (0..50_000).map(|n| n * 7_919 % 10_007).collect();
    numbers.par_sort_unstable();
    let (left, right) = rayon::join(|| numbers[..100].iter().sum::<u64>(), || numbers[49_999]);
    println!("rayon: {sum} {left} {right}");
}
