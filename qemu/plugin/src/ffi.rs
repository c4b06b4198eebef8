//! QEMU's plugin interface, version 7, and the two GLib arrays that it uses.
//!
//! The declarations are written by hand after `qemu-plugin.h`, and limited to the functions that
//! this plugin calls. Each call states why it is allowed.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// The version of the plugin interface that is declared here.
pub(crate) const API_VERSION: c_int = 7;

pub(crate) type PluginId = u64;

/// `qemu_info_t`: QEMU's description of itself.
#[repr(C)]
pub(crate) struct Info {
    pub(crate) target_name: *const c_char,
    pub(crate) version_min: c_int,
    pub(crate) version_current: c_int,
    pub(crate) system_emulation: bool,
    pub(crate) smp_vcpus: c_int,
    pub(crate) max_vcpus: c_int,
}

/// A block being translated.
#[repr(C)]
pub(crate) struct Tb([u8; 0]);
/// An instruction of a block being translated.
#[repr(C)]
pub(crate) struct TbInsn([u8; 0]);
/// The handle of a register.
#[repr(C)]
pub(crate) struct RegisterHandle([u8; 0]);
/// The physical address of an access.
#[repr(C)]
pub(crate) struct HwAddr([u8; 0]);

#[repr(C)]
pub(crate) struct GByteArray {
    pub(crate) data: *mut u8,
    pub(crate) len: c_uint,
}

#[repr(C)]
pub(crate) struct GArray {
    pub(crate) data: *mut u8,
    pub(crate) len: c_uint,
}

#[repr(C)]
pub(crate) struct RegisterDescriptor {
    pub(crate) handle: *mut RegisterHandle,
    pub(crate) name: *const c_char,
    pub(crate) feature: *const c_char,
    pub(crate) is_readonly: bool,
}

/// `qemu_plugin_mem_value`.
#[repr(C)]
pub(crate) struct MemValue {
    pub(crate) kind: c_int,
    pub(crate) low: u64,
    pub(crate) high: u64,
}

/// Array of one `u64` for each vCPU, which inline conditions can test.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct PerVcpu {
    pub(crate) scoreboard: *mut c_void,
    pub(crate) offset: usize,
}

pub(crate) type UdataCb = extern "C" fn(*mut c_void);
pub(crate) type VcpuCb = extern "C" fn(c_uint, *mut c_void);
pub(crate) type TransCb = extern "C" fn(*mut Tb, *mut c_void);
pub(crate) type DisconCb = extern "C" fn(c_uint, c_int, u64, u64, *mut c_void);
pub(crate) type MemCb = extern "C" fn(c_uint, u32, u64, *mut c_void);

/// `qemu_plugin_cb_flags`: the callback accesses no register.
pub(crate) const CB_NO_REGS: c_int = 0;
/// The callback reads and writes registers and may set the program counter.
pub(crate) const CB_RW_REGS_PC: c_int = 3;
/// `qemu_plugin_cond`: not equal.
pub(crate) const COND_NE: c_int = 3;
/// `qemu_plugin_mem_rw`: reads.
pub(crate) const MEM_R: c_int = 1;
/// `qemu_plugin_mem_rw`: writes.
pub(crate) const MEM_W: c_int = 2;
/// `qemu_plugin_discon_type`: an exception.
pub(crate) const DISCON_EXCEPTION: c_int = 2;
/// `qemu_plugin_discon_type`: an interrupt, or an exception.
pub(crate) const DISCON_INTERRUPT_OR_EXCEPTION: c_int = 3;

unsafe extern "C" {
    pub(crate) fn qemu_plugin_reset(id: PluginId, cb: UdataCb, userdata: *mut c_void);
    pub(crate) fn qemu_plugin_register_vcpu_init_cb(
        id: PluginId,
        cb: VcpuCb,
        userdata: *mut c_void,
    );
    pub(crate) fn qemu_plugin_register_vcpu_tb_trans_cb(
        id: PluginId,
        cb: TransCb,
        userdata: *mut c_void,
    );
    pub(crate) fn qemu_plugin_register_vcpu_discon_cb(
        id: PluginId,
        kind: c_int,
        cb: DisconCb,
        userdata: *mut c_void,
    );
    pub(crate) fn qemu_plugin_register_flush_cb(id: PluginId, cb: UdataCb, userdata: *mut c_void);
    pub(crate) fn qemu_plugin_register_atexit_cb(id: PluginId, cb: UdataCb, userdata: *mut c_void);

    pub(crate) fn qemu_plugin_register_vcpu_tb_exec_cb(
        tb: *mut Tb,
        cb: VcpuCb,
        flags: c_int,
        userdata: *mut c_void,
    );
    pub(crate) fn qemu_plugin_register_vcpu_tb_exec_cond_cb(
        tb: *mut Tb,
        cb: VcpuCb,
        flags: c_int,
        condition: c_int,
        entry: PerVcpu,
        operand: u64,
        userdata: *mut c_void,
    );
    pub(crate) fn qemu_plugin_scoreboard_new(element_size: usize) -> *mut c_void;
    pub(crate) fn qemu_plugin_u64_set(entry: PerVcpu, vcpu: c_uint, value: u64);
    pub(crate) fn qemu_plugin_register_vcpu_insn_exec_cb(
        insn: *mut TbInsn,
        cb: VcpuCb,
        flags: c_int,
        userdata: *mut c_void,
    );
    pub(crate) fn qemu_plugin_register_vcpu_mem_cb(
        insn: *mut TbInsn,
        cb: MemCb,
        flags: c_int,
        rw: c_int,
        userdata: *mut c_void,
    );

    pub(crate) fn qemu_plugin_tb_n_insns(tb: *const Tb) -> usize;
    pub(crate) fn qemu_plugin_tb_get_insn(tb: *const Tb, index: usize) -> *mut TbInsn;
    pub(crate) fn qemu_plugin_insn_data(
        insn: *const TbInsn,
        dest: *mut c_void,
        len: usize,
    ) -> usize;
    pub(crate) fn qemu_plugin_insn_vaddr(insn: *const TbInsn) -> u64;

    pub(crate) fn qemu_plugin_mem_size_shift(info: u32) -> c_uint;
    pub(crate) fn qemu_plugin_mem_get_value(info: u32) -> MemValue;
    pub(crate) fn qemu_plugin_get_hwaddr(info: u32, vaddr: u64) -> *mut HwAddr;
    pub(crate) fn qemu_plugin_hwaddr_is_io(address: *const HwAddr) -> bool;
    pub(crate) fn qemu_plugin_translate_vaddr(vaddr: u64, hwaddr: *mut u64) -> bool;

    pub(crate) fn qemu_plugin_get_registers() -> *mut GArray;
    pub(crate) fn qemu_plugin_read_register(
        handle: *mut RegisterHandle,
        buf: *mut GByteArray,
    ) -> bool;
    pub(crate) fn qemu_plugin_write_register(
        handle: *mut RegisterHandle,
        buf: *mut GByteArray,
    ) -> bool;
    pub(crate) fn qemu_plugin_set_pc(vaddr: u64) -> !;
    pub(crate) fn qemu_plugin_read_memory_hwaddr(
        addr: u64,
        data: *mut GByteArray,
        len: usize,
    ) -> c_int;
    pub(crate) fn qemu_plugin_write_memory_hwaddr(addr: u64, data: *mut GByteArray) -> c_int;
    pub(crate) fn qemu_plugin_write_memory_vaddr(addr: u64, data: *mut GByteArray) -> bool;
    pub(crate) fn qemu_plugin_read_memory_vaddr(
        addr: u64,
        data: *mut GByteArray,
        len: usize,
    ) -> bool;

    pub(crate) fn g_byte_array_new() -> *mut GByteArray;
    pub(crate) fn g_byte_array_set_size(array: *mut GByteArray, length: c_uint) -> *mut GByteArray;
}
