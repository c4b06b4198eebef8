//! Bytes that make the kernel larger, for a test that nothing which is measured depends on its
//! size. They are behind the read-only data (`kernel/sections.ld`).

/// As many as the environment variable says when the kernel is built; none without it.
const BYTES: usize = match option_env!("TALLY_KERNEL_PADDING") {
    Some(text) => parse(text.as_bytes()),
    None => 0,
};

#[used]
#[unsafe(link_section = ".padding")]
static PADDING: [u8; BYTES] = [0xcc; BYTES];

const fn parse(digits: &[u8]) -> usize {
    let (mut value, mut at) = (0, 0);
    while at < digits.len() {
        value = value * 10 + (digits[at] - b'0') as usize;
        at += 1;
    }
    value
}
