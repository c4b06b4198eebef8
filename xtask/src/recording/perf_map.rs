//! The names that a just-in-time compiler gives its code: a file `perf-PID.map`, which the program
//! writes in `/tmp`, as perf reads it (Linux, tools/perf/Documentation/jit-interface.txt).
//!
//! A line has an address and a size in hexadecimal and a name. A later line replaces earlier ones,
//! as code is compiled anew.

use std::path::Path;

use crate::{Result, project, visible::visible};

/// The code of a map.
#[derive(Debug, Default)]
pub(super) struct PerfMap {
    program: u32,
    /// First address, length in bytes and name, in the order of the file.
    code: Vec<(u64, u64, String)>,
}

/// The program's number in the name of a map.
pub(crate) fn program_of_map(path: &Path) -> Option<u32> {
    path.file_name()?.to_str()?.strip_prefix("perf-")?.strip_suffix(".map")?.parse().ok()
}

impl PerfMap {
    /// Reads a map; `None` if the file's name is that of none.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn read(path: &Path) -> Result<Option<PerfMap>> {
        let Some(program) = program_of_map(path) else { return Ok(None) };
        let bytes = project::read(path)?;
        let code = String::from_utf8_lossy(&bytes).lines().filter_map(parsed).collect();
        Ok(Some(PerfMap { program, code }))
    }

    /// The name of the code of a program at an address.
    pub(super) fn name(&self, program: u32, address: u64) -> Option<&str> {
        let mut lines = self.code.iter().rev().filter(|_| program == self.program);
        let has = |(start, bytes, _): &&(u64, u64, String)| {
            address.checked_sub(*start).is_some_and(|offset| offset < *bytes)
        };
        lines.find(has).map(|(.., name)| name.as_str())
    }
}

/// The parts of a line; `None` if it is none.
fn parsed(line: &str) -> Option<(u64, u64, String)> {
    let (start, rest) = line.split_once(' ')?;
    let (bytes, name) = rest.split_once(' ')?;
    let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    Some((number(start)?, number(bytes)?, visible(name.trim()).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_lines_of_a_map_replace_earlier_ones() {
        let text = "1000 20 LazyCompile:*a /x y.js:1:2\nno line\n0x1010 10 b\n2000 8 \u{1b}c";
        let code = text.lines().filter_map(parsed).collect();
        let map = PerfMap { program: 2, code };
        assert_eq!(map.name(2, 0x100f), Some("LazyCompile:*a /x y.js:1:2"));
        assert_eq!((map.name(2, 0x1010), map.name(2, 0x1020)), (Some("b"), None));
        assert_eq!(map.name(3, 0x1000), None);
        assert!(map.name(2, 0x2007).is_some_and(|name| !name.contains('\u{1b}')));
        assert_eq!(program_of_map(Path::new("/tmp/perf-17.map")), Some(17));
        assert_eq!(program_of_map(Path::new("/tmp/perf-a.map")), None);
    }
}
