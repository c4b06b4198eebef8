//! Links the guest at 1 MiB, as QEMU's `-kernel` loads it.

fn main() {
    let here = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    println!("cargo:rerun-if-changed=link.ld");
    for argument in ["--no-pie", "-z", "noexecstack", "--build-id=none"] {
        println!("cargo:rustc-link-arg-bins={argument}");
    }
    println!("cargo:rustc-link-arg-bins=-T{here}/link.ld");
}
