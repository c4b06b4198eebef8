//! The options of the run.

use std::sync::OnceLock;

use tally_vpmu::PluginOptions;

static OPTIONS: OnceLock<PluginOptions> = OnceLock::new();

/// Stores the options of the run.
pub(crate) fn store(options: PluginOptions) {
    let _ = OPTIONS.set(options);
}

/// The options of the run, once they are stored.
pub(crate) fn get() -> Option<&'static PluginOptions> {
    OPTIONS.get()
}
