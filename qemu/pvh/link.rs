//! The build script of the guests that enter by PVH: links them at 1 MiB, as QEMU's `-kernel` loads
//! them.

fn main() {
    let here = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let script = format!("{here}/../pvh/link.ld");
    println!("cargo:rerun-if-changed={script}");
    for argument in ["--no-pie", "-z", "noexecstack", "--build-id=none"] {
        println!("cargo:rustc-link-arg-bins={argument}");
    }
    println!("cargo:rustc-link-arg-bins=-T{script}");
}
