#!/bin/sh
# rustc for the guest's crates. Cargo's metadata of Rust's library are a hash of its folder's path,
# and the crates that use it take them in. The order of functions and their inlining depend on them,
# and so would what is counted. In their place: the package's name and version, which are unique
# among the crates of an executable. Paths in debug information, of which names of symbols have
# hashes, are relative to the project.
root=${0%/xtask/src/build/rustc.sh}
rustc=$1
shift
for argument in "$@"; do
    shift
    case $argument in
        metadata=*) argument=metadata=$CARGO_PKG_NAME-$CARGO_PKG_VERSION ;;
    esac
    set -- "$@" "$argument"
done
exec "$rustc" "$@" --remap-path-prefix "$root=." \
    --remap-path-prefix "${CARGO_HOME:-$HOME/.cargo}=/cargo"
