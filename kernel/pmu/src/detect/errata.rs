//! Errata of counters that have no workaround.

/// Returns a remark about an erratum of the counters that has no workaround: AMD's 1292 of family
/// 19h, models 00h to 0Fh ("Revision Guide for AMD Family 19h Models 00h-0Fh Processors", 56683),
/// and 1023 of Zen 1 and its copy by Hygon ("Revision Guide for AMD Family 17h Models 00h-0Fh
/// Processors", 55449).
pub(super) fn erratum(vendor: &[u8; 12], family: u16, model: u8) -> Option<&'static str> {
    match (vendor, family, model) {
        (b"AuthenticAMD", 0x19, ..=0x0f) => Some(
            "erratum 1292: counts of retired instructions and branches may rarely be too high, \
             also those that are called exact",
        ),
        (b"AuthenticAMD", 0x17, ..=0x2f) | (b"HygonGenuine", ..) => Some(
            "erratum 1023: an overflow interrupt may not come while two counters count; its slice \
             then lasts until the scheduler's next tick, 10 ms, and is among the lost PMIs",
        ),
        _ => None,
    }
}
