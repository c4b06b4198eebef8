//! AMD's tables, read from libpfm4 (perfmon2.sourceforge.net, MIT). The library is loaded at run
//! time, so that the other commands do not need it.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_uint, c_void},
    ptr,
};

use libloading::Library;

use crate::line::{COLUMNS, Line};

/// `pfm_event_info_t` of `perfmon/pfmlib.h`, 4.13.
#[repr(C)]
struct EventInfo {
    name: *const c_char,
    desc: *const c_char,
    equiv: *const c_char,
    size: usize,
    code: u64,
    pmu: c_uint,
    dtype: c_uint,
    idx: c_int,
    nattrs: c_int,
    reserved: c_int,
    flags: c_uint,
}

/// `pfm_event_attr_info_t`.
#[repr(C)]
struct AttributeInfo {
    name: *const c_char,
    desc: *const c_char,
    equiv: *const c_char,
    size: usize,
    code: u64,
    kind: c_uint,
    idx: c_int,
    ctrl: c_uint,
    flags: c_uint,
    default: u64,
}

const _: () = assert!(size_of::<EventInfo>() == 64 && size_of::<AttributeInfo>() == 64);

/// `PFM_ATTR_UMASK`.
const UNIT_MASK: c_uint = 1;
/// `PFM_PLM3`: ring 3. libpfm requires a privilege level; it does not change the table.
const RING_3: c_int = 8;
/// AMD's core counters, all of which count every core event.
const COUNTERS: &str = "3f";

type Initialize = unsafe extern "C" fn() -> c_int;
type FindEvent = unsafe extern "C" fn(*const c_char) -> c_int;
type NextEvent = unsafe extern "C" fn(c_int) -> c_int;
type GetEvent = unsafe extern "C" fn(c_int, c_int, *mut EventInfo) -> c_int;
type GetAttribute = unsafe extern "C" fn(c_int, c_int, c_int, *mut AttributeInfo) -> c_int;
type Encode = unsafe extern "C" fn(
    *const c_char,
    c_int,
    *mut *mut c_char,
    *mut c_int,
    *mut *mut u64,
    *mut c_int,
) -> c_int;

/// Functions of the library.
struct Pfm {
    find: FindEvent,
    next: NextEvent,
    event: GetEvent,
    attribute: GetAttribute,
    encode: Encode,
    _library: Library,
}

/// Table of `processor`, `zen3` or `zen4`.
pub(crate) fn table(processor: &str) -> Result<String, String> {
    if std::env::var_os("LIBPFM_ENCODE_INACTIVE").is_none() {
        return Err(
            "LIBPFM_ENCODE_INACTIVE is not set: set it to 1, so that libpfm encodes other processors' events".into()
        );
    }
    let pmu = match processor {
        "zen3" => "amd64_fam19h_zen3",
        "zen4" => "amd64_fam19h_zen4",
        _ => return Err(format!("unknown processor {processor}: use zen3 or zen4")),
    };
    let pfm = Pfm::load()?;
    let mut table = format!(
        "# AMD {processor}: core events.\n# Facts from {} ({pmu}), made by \
         tally-catalogue.\n# Licence of the source: MIT, text in kernel/pmu/LICENSES/MIT-libpfm4.txt.\n{COLUMNS}",
        loaded_file()?
    );
    for name in pfm.names(pmu)? {
        table += &line(&name, pfm.encoding(pmu, &name)?).to_string();
    }
    Ok(table)
}

/// File name of the library, which contains its version: `libpfm.so.4.13.0`. (The library itself
/// reports only the version of its interface.)
fn loaded_file() -> Result<String, String> {
    let maps = std::fs::read_to_string("/proc/self/maps").map_err(|error| error.to_string())?;
    let mut names = maps.lines().filter_map(|line| line.rsplit_once('/')).map(|(_, name)| name);
    let name = names.find(|name| name.starts_with("libpfm.so"));
    name.map(String::from).ok_or_else(|| "libpfm is not mapped".into())
}

fn line(name: &str, select: u64) -> Line {
    Line {
        name: name.replace(':', ".").to_uppercase(),
        code: format!("{:x}", select & 0xff | select >> 24 & 0xf00),
        umask: (select >> 8) as u8,
        cmask: (select >> 24) as u8,
        inv: select >> 23 & 1 == 1,
        edge: select >> 18 & 1 == 1,
        counters: COUNTERS.into(),
        flag: '-',
        msr: "0".into(),
        value: 0,
    }
}

impl Pfm {
    fn load() -> Result<Pfm, String> {
        let why = |error: libloading::Error| format!("cannot load libpfm4: {error}");
        // SAFETY: the library's initialisers only set up its own state.
        let library = unsafe { Library::new("libpfm.so.4") }.map_err(why)?;
        macro_rules! function {
            ($name:literal, $type:ty) => {
                // SAFETY: the type is the function's prototype in pfmlib.h.
                *unsafe { library.get::<$type>($name) }.map_err(why)?
            };
        }
        let initialize = function!(b"pfm_initialize", Initialize);
        // SAFETY: the function takes no argument and is called once, before all others.
        let error = unsafe { initialize() };
        if error != 0 {
            return Err(format!("pfm_initialize failed with {error}"));
        }
        Ok(Pfm {
            find: function!(b"pfm_find_event", FindEvent),
            next: function!(b"pfm_get_event_next", NextEvent),
            event: function!(b"pfm_get_event_info", GetEvent),
            attribute: function!(b"pfm_get_event_attr_info", GetAttribute),
            encode: function!(b"pfm_get_event_encoding", Encode),
            _library: library,
        })
    }

    /// Names of events: `EVENT` for each event of `pmu` without unit masks, `EVENT:MASK` for each
    /// mask of the others.
    fn names(&self, pmu: &str) -> Result<Vec<String>, String> {
        let mut names = Vec::new();
        let wanted = self.event(self.find(&format!("{pmu}::RETIRED_INSTRUCTIONS"))?)?.pmu;
        let mut index = self.first_of(pmu, wanted)?;
        while let Ok(event) = self.event(index)
            && event.pmu == wanted
        {
            let name = text(event.name);
            let masks: Vec<String> = (0..event.nattrs)
                .filter_map(|attribute| self.unit_mask(index, attribute))
                .map(|mask| format!("{name}:{mask}"))
                .collect();
            if masks.is_empty() {
                names.push(name)
            } else {
                names.extend(masks)
            }
            // SAFETY: the function takes and returns an index, negative at the end.
            index = unsafe { (self.next)(index) };
            if index < 0 {
                break;
            }
        }
        Ok(names)
    }

    /// Index of the first event of the PMU: indices of one PMU are consecutive.
    fn first_of(&self, pmu: &str, wanted: c_uint) -> Result<c_int, String> {
        let mut index = self.find(&format!("{pmu}::RETIRED_INSTRUCTIONS"))?;
        while index > 0 && self.event(index - 1).is_ok_and(|event| event.pmu == wanted) {
            index -= 1;
        }
        Ok(index)
    }

    fn find(&self, name: &str) -> Result<c_int, String> {
        let c_name = CString::new(name).map_err(|error| error.to_string())?;
        // SAFETY: the string ends in a zero byte and outlives the call.
        let index = unsafe { (self.find)(c_name.as_ptr()) };
        if index < 0 { Err(format!("libpfm has no {name}")) } else { Ok(index) }
    }

    fn event(&self, index: c_int) -> Result<EventInfo, String> {
        let mut info = EventInfo {
            name: ptr::null(),
            desc: ptr::null(),
            equiv: ptr::null(),
            size: size_of::<EventInfo>(),
            code: 0,
            pmu: 0,
            dtype: 0,
            idx: 0,
            nattrs: 0,
            reserved: 0,
            flags: 0,
        };
        // SAFETY: `info` has the type that the function fills, and states its own size.
        let error = unsafe { (self.event)(index, 0, &mut info) };
        if error == 0 { Ok(info) } else { Err(format!("no event {index}")) }
    }

    fn unit_mask(&self, event: c_int, attribute: c_int) -> Option<String> {
        let mut info = AttributeInfo {
            name: ptr::null(),
            desc: ptr::null(),
            equiv: ptr::null(),
            size: size_of::<AttributeInfo>(),
            code: 0,
            kind: 0,
            idx: 0,
            ctrl: 0,
            flags: 0,
            default: 0,
        };
        // SAFETY: `info` has the type that the function fills, and states its own size.
        let error = unsafe { (self.attribute)(event, attribute, 0, &mut info) };
        (error == 0 && info.kind == UNIT_MASK).then(|| text(info.name))
    }

    fn encoding(&self, pmu: &str, name: &str) -> Result<u64, String> {
        let c_name = CString::new(format!("{pmu}::{name}")).map_err(|error| error.to_string())?;
        let mut codes = [0_u64; 4];
        let (mut pointer, mut count) = (codes.as_mut_ptr(), codes.len() as c_int);
        // SAFETY: the string ends in a zero byte; `pointer` leads to `count` numbers that the
        // function may fill; null pointers request no other result.
        let error = unsafe {
            (self.encode)(
                c_name.as_ptr(),
                RING_3,
                ptr::null_mut(),
                ptr::null_mut(),
                &mut pointer,
                &mut count,
            )
        };
        if error == 0 { Ok(codes[0]) } else { Err(format!("libpfm cannot encode {name}: {error}")) }
    }
}

fn text(pointer: *const c_char) -> String {
    if pointer.cast::<c_void>().is_null() {
        return String::new();
    }
    // SAFETY: libpfm's names are static strings that end in a zero byte.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}
