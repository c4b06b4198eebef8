//! Links the kernel by `sections.ld`: its sections at fixed addresses, and its code in pages of
//! 2 MiB of its own, for `memory::takeover`, which maps it by large pages.

fn main() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/sections.ld");
    println!("cargo::rerun-if-changed={script}");
    println!("cargo::rustc-link-arg-bins=-T{script}");
}
