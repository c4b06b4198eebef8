//! The virtual PMU keeps the manuals' rules, and counts exactly, on every profile.

use xtask::vpmu_check::{Profile, check};

use crate::artefacts;

fn assert_holds(profile: Profile) {
    let artefacts = artefacts();
    let guest = artefacts.check_guest.expect("`cargo xtask test` builds it");
    for options in profile.variants() {
        let checked = check(&artefacts.qemu, &artefacts.plugin, &guest, profile, options)
            .unwrap_or_else(|failure| panic!("{failure}"));
        let failed: Vec<&String> = checked.lines.iter().filter(|l| l.starts_with("FAIL")).collect();
        assert!(failed.is_empty(), "{options}: {failed:#?}");
        assert!(checked.held >= 250, "{options}: only {} checks ran", checked.held);
    }
}

#[test]
fn icelake_server_keeps_the_rules() {
    assert_holds(Profile::IcelakeServer);
}

#[test]
fn sapphire_rapids_keeps_the_rules() {
    assert_holds(Profile::SapphireRapids);
}

#[test]
fn zen_3_keeps_the_rules() {
    assert_holds(Profile::Zen3);
}

#[test]
fn zen_4_keeps_the_rules() {
    assert_holds(Profile::Zen4);
}
