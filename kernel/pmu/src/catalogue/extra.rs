//! Extra registers of spelled events: the value that a spelling gives, for the register that the
//! event takes.

use alloc::{format, string::String};

use tally_abi::Error;

use super::{Entry, spelling, table::ExtraRegister};

/// Returns the extra register of an event whose most similar event needs the register `wants`, with
/// the value of the spelling, if it has one.
pub(super) fn extra_of(
    entry: &Entry<'_>,
    wants: Option<ExtraRegister>,
    spelled: Option<spelling::Extra>,
) -> Result<Option<ExtraRegister>, (Error, String)> {
    match (wants, spelled) {
        (Some(register), Some(spelled)) => named_register(register, spelled).map(Some),
        (Some(register), None) if entry.extra.is_some_and(|x| x.msr == register.msr) => {
            Ok(entry.extra)
        }
        (Some(register), None) => {
            let term = term_of(register.msr);
            let why = format!("it counts nothing without {term}= (register {:#x})", register.msr);
            Err((Error::BadArgument, why))
        }
        (None, Some(_)) => {
            let why =
                "it takes no value in an extra register (offcore_rsp, frontend, ldlat, config1)";
            Err((Error::BadArgument, why.into()))
        }
        (None, None) => Ok(None),
    }
}

/// Returns `register` with the value that the spelling gives it.
fn named_register(
    register: ExtraRegister,
    extra: spelling::Extra,
) -> Result<ExtraRegister, (Error, String)> {
    let (value, term) = match extra {
        spelling::Extra::OffcoreResponse(value) => (value, "offcore_rsp"),
        spelling::Extra::Frontend(value) => (value, "frontend"),
        spelling::Extra::LoadLatency(value) => (value, "ldlat"),
        spelling::Extra::Any(value) => (value, term_of(register.msr)),
    };
    if term != term_of(register.msr) {
        let why = format!("'{term}': this event takes {}", term_of(register.msr));
        return Err((Error::BadArgument, why));
    }
    Ok(ExtraRegister { value, ..register })
}

/// Returns perf's term for a register's value.
fn term_of(msr: u32) -> &'static str {
    match msr {
        0x1a6 | 0x1a7 => "offcore_rsp",
        0x3f7 => "frontend",
        _ => "ldlat",
    }
}
