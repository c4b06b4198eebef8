//! Test that the crate's page has the model's measurements, next to the published ones.

#[path = "common/published.rs"]
mod published;

#[test]
fn the_page_has_the_measured_table() {
    let table = published::table();
    let page = include_str!("../README.md");
    assert!(page.contains(&table), "README.md lacks what `--example published` prints:\n{table}");
}
