//! What the plugin has to say, once each: in the log file that was asked for, or on standard error.

use std::{
    collections::BTreeSet,
    fs::File,
    io::Write,
    path::Path,
    sync::{Mutex, OnceLock},
};

use tally_vpmu::Unmodelled;

static FILE: OnceLock<Mutex<File>> = OnceLock::new();
static SAID: Mutex<BTreeSet<Said>> = Mutex::new(BTreeSet::new());

/// Sends what follows to this file.
pub(crate) fn open(path: &Path) -> Result<(), String> {
    let file = File::create(path)
        .map_err(|error| format!("log={}: cannot be written: {error}", path.display()))?;
    let _ = FILE.set(Mutex::new(file));
    Ok(())
}

/// One line.
pub(crate) fn line(text: &str) {
    let Some(file) = FILE.get() else {
        eprintln!("tally-vpmu: {text}");
        return;
    };
    if let Ok(mut file) = file.lock() {
        // A log that cannot be written has nowhere to say so.
        let _ = writeln!(file, "{text}");
    }
}

/// What is said once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Said {
    /// The processor is of another vendor.
    WrongVendor,
    /// A delivery mode that is not delivered.
    Delivery(u32),
    /// A planned interrupt met a masked entry.
    Masked,
    /// The guest asked for this.
    Unmodelled(Unmodelled),
}

/// One line, the first time that `key` comes up.
pub(crate) fn once(key: Said, text: impl FnOnce() -> String) {
    let is_new = SAID.lock().is_ok_and(|mut said| said.insert(key));
    if is_new {
        line(&text());
    }
}
