//! Programs of a study by name.

use tally_abi::ExitStatus;
use xtask::{Failure, Result};

/// Checks that a study has the programs of these names.
///
/// # Errors
/// It does not have one.
pub(super) fn check(known: &[&str], names: &[String]) -> Result<()> {
    let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) else {
        return Ok(());
    };
    let why = format!("the study has no program {unknown}: name one of {}", known.join(", "));
    Err(Failure::new(ExitStatus::Usage, why))
}
