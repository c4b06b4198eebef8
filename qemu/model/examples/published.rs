//! Prints the table of published measurements in this crate's README.md.
//!
//! `cargo run --release -p tally-model --example published`

#[path = "../tests/common/published.rs"]
mod published;

fn main() {
    print!("{}", published::table());
}
