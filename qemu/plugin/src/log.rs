//! The plugin's messages, each once: to the log file of the options, or to standard error.

use std::{
    collections::BTreeSet,
    fs::File,
    io::Write,
    path::Path,
    sync::{Mutex, OnceLock},
};

use tally_vpmu::Unmodelled;

static FILE: OnceLock<Mutex<File>> = OnceLock::new();
static LOGGED: Mutex<BTreeSet<Once>> = Mutex::new(BTreeSet::new());

/// Directs the messages to a file.
pub(crate) fn open(path: &Path) -> Result<(), String> {
    let file = File::create(path).map_err(|error| format!("log={}: {error}", path.display()))?;
    let _ = FILE.set(Mutex::new(file));
    Ok(())
}

/// Logs one line.
pub(crate) fn line(text: &str) {
    let Some(file) = FILE.get() else {
        eprintln!("tally-vpmu: {text}");
        return;
    };
    if let Ok(mut file) = file.lock() {
        // An error in writing the log cannot be reported anywhere else.
        let _ = writeln!(file, "{text}");
    }
}

/// A message that is logged once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Once {
    /// CPUID's vendor is not the profile's.
    WrongVendor,
    /// The local vector table has a delivery mode that is not supported.
    Delivery(u32),
    /// An injected interrupt found its entry masked.
    MaskedInjection,
    /// The guest selected something that is not modelled.
    Unmodelled(Unmodelled),
}

/// Logs one line, at the first call with `key`.
pub(crate) fn once(key: Once, text: impl FnOnce() -> String) {
    let is_new = LOGGED.lock().is_ok_and(|mut logged| logged.insert(key));
    if is_new {
        line(&text());
    }
}
