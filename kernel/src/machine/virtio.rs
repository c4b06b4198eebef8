//! The driver of a virtio console device with ports for the trace and for files.
//!
//! One port is open at a time: opening one resets the device.
//!
//! The crate `virtio-drivers` implements the queues and their transport. Its console driver is not
//! used: it waits for each buffer, for ever if the host stops reading.

use core::ptr::NonNull;

use bitflags::bitflags;
use virtio_drivers::{
    BufferDirection, Hal, PAGE_SIZE,
    queue::VirtQueue,
    transport::{
        DeviceType, Transport,
        pci::{
            PciTransport,
            bus::{BarInfo, Command, ConfigurationAccess, DeviceFunction, PciRoot},
            virtio_device_type,
        },
    },
};
use x86_64::{PhysAddr, instructions::port::Port, structures::paging::PhysFrame};

use crate::memory::{
    frames::{self, User, kernel_view},
    kernel,
};

const CONFIG_ADDRESS: u16 = 0xcf8;
const CONFIG_DATA: u16 = 0xcfc;
const CONFIG_ENABLE: u32 = 1 << 31;

bitflags! {
    /// Features that the driver accepts (virtio 1.2, 5.3.3 "Feature bits", 6 "Reserved Feature
    /// Bits").
    #[derive(Clone, Copy, Debug)]
    struct Features: u64 {
        const MULTIPORT = 1 << 1;
        const VERSION_1 = 1 << 32;
    }
}

/// Buffers of a queue.
pub const QUEUE: usize = 32;
/// The queue of control messages to the device.
const CONTROL: u16 = 3;

/// A port. Port 0 belongs to a console; QEMU discards its data if the reader is slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortNumber {
    /// The trace.
    Trace = 1,
    /// The files that programs created or changed.
    Files = 2,
}

impl PortNumber {
    /// The queue from the driver to the port (virtio 1.2, 5.3.2 "Virtqueues").
    fn queue(self) -> u16 {
        2 * self as u16 + 3
    }

    /// Control messages (port, event): the driver is ready, it is ready for the port, the port is
    /// open.
    fn events(self) -> [(u32, u16); 3] {
        [(0, 0), (self as u32, 3), (self as u32, 6)]
    }
}

/// The guest's end of a port.
pub struct VirtioPort {
    transport: PciTransport,
    queue: VirtQueue<KernelHal, QUEUE>,
    number: PortNumber,
}

impl VirtioPort {
    /// Finds the port; `None` if this machine lacks it. Ends the use of a port that was open
    /// before.
    pub fn find(number: PortNumber) -> Option<VirtioPort> {
        let mut root = PciRoot::new(PciPorts);
        let is_console = |device: &DeviceFunction| {
            let mut found = root.enumerate_bus(0).filter(|(place, _)| place == device);
            found.any(|(_, info)| virtio_device_type(&info) == Some(DeviceType::Console))
        };
        let place = root.enumerate_bus(0).map(|(place, _)| place).find(is_console)?;
        let bars = root.bars(place).ok()?;
        for (start, bytes) in bars.iter().flatten().filter_map(BarInfo::memory_address_size) {
            for page in (start..start + bytes).step_by(PAGE_SIZE) {
                kernel::space().map_registers(PhysAddr::try_new(page).ok()?).ok()?;
            }
        }
        root.set_command(place, Command::MEMORY_SPACE | Command::BUS_MASTER);
        let transport = PciTransport::new::<KernelHal, _>(&mut root, place);
        let opened = transport.ok().and_then(|transport| VirtioPort::open(transport, number));
        if opened.is_none() {
            log::warn!("virtio console without a usable port {}", number as u32);
        }
        opened
    }

    fn open(mut transport: PciTransport, number: PortNumber) -> Option<VirtioPort> {
        let taken = transport.begin_init(Features::all());
        if !taken.contains(Features::all()) {
            return None;
        }
        let mut control =
            VirtQueue::<KernelHal, QUEUE>::new(&mut transport, CONTROL, false, false).ok()?;
        let mut queue = VirtQueue::new(&mut transport, number.queue(), false, false).ok()?;
        queue.set_dev_notify(false);
        control.set_dev_notify(false);
        transport.finish_init();
        let frame = frames::allocate_in_turn(User::Kernel).ok()?;
        let page = kernel_view(frame.start_address()).as_mut_ptr::<[u8; PAGE_SIZE]>();
        // SAFETY: the frame is new and never freed.
        let page: &'static mut [u8; PAGE_SIZE] = unsafe { &mut *page };
        for (message, (port, event)) in page.chunks_exact_mut(8).zip(number.events()) {
            message[..4].copy_from_slice(&port.to_le_bytes());
            message[4..6].copy_from_slice(&event.to_le_bytes());
            message[6..].copy_from_slice(&1_u16.to_le_bytes());
        }
        let page: &'static [u8; PAGE_SIZE] = page;
        for message in page.chunks_exact(8).take(number.events().len()) {
            // SAFETY: the message is never written to again.
            unsafe { control.add(&[message], &mut []) }.ok()?;
        }
        transport.notify(CONTROL);
        // The device may read the messages later.
        core::mem::forget(control);
        Some(VirtioPort { transport, queue, number })
    }

    /// Sends bytes. Returns the token with which the device returns them. At most [`QUEUE`] buffers
    /// can be in flight.
    ///
    /// # Safety
    /// The bytes are in memory that [`kernel_view`] maps, and nothing writes to them until
    /// [`Self::take_back`] has returned the token.
    pub unsafe fn send(&mut self, bytes: &[u8]) -> Option<u16> {
        // SAFETY: by this function's contract.
        let token = unsafe { self.queue.add(&[bytes], &mut []) }.ok()?;
        if self.queue.should_notify() {
            self.transport.notify(self.number.queue());
        }
        Some(token)
    }

    /// Takes back a buffer that the device has returned, if there is one. Returns its token;
    /// `bytes` returns the bytes of a token.
    ///
    /// # Safety
    /// `bytes` returns the bytes that were sent with the token.
    pub unsafe fn take_back<'a>(&mut self, bytes: impl FnOnce(u16) -> &'a [u8]) -> Option<u16> {
        let token = self.queue.peek_used()?;
        // SAFETY: by this function's contract.
        unsafe { self.queue.pop_used(token, &[bytes(token)], &mut []) }.ok()?;
        Some(token)
    }
}

/// The kernel's functions that the library calls.
struct KernelHal;

// SAFETY: frames are page-aligned, zero, and used by nothing else; `VirtioPort::find` has
// mapped the device's registers at the address that `kernel_view` returns, which nothing else uses.
unsafe impl Hal for KernelHal {
    fn dma_alloc(pages: usize, _: BufferDirection) -> (u64, NonNull<u8>) {
        // Frames are allocated one by one; queues of this length need only one. Address 0 signals
        // failure.
        let frame = if pages == 1 { frames::allocate_in_turn(User::Kernel).ok() } else { None };
        let Some(frame) = frame else { return (0, NonNull::dangling()) };
        let view = kernel_view(frame.start_address()).as_mut_ptr();
        let view = NonNull::new(view).expect("physical memory is not mapped at 0");
        (frame.start_address().as_u64(), view)
    }

    unsafe fn dma_dealloc(address: u64, _: NonNull<u8>, _: usize) -> i32 {
        // SAFETY: the library frees what `dma_alloc` returned.
        unsafe { frames::free(PhysFrame::containing_address(PhysAddr::new(address))) };
        0
    }

    unsafe fn mmio_phys_to_virt(address: u64, _: usize) -> NonNull<u8> {
        NonNull::new(kernel_view(PhysAddr::new(address)).as_mut_ptr())
            .expect("physical memory is not mapped at 0")
    }

    unsafe fn share(buffer: NonNull<[u8]>, _: BufferDirection) -> u64 {
        buffer.cast::<u8>().addr().get() as u64 - kernel_view(PhysAddr::zero()).as_u64()
    }

    unsafe fn unshare(_: u64, _: NonNull<[u8]>, _: BufferDirection) {}
}

/// PCI's configuration space through ports, which every PC has (PCI local bus specification,
/// 3.2.2.3.2).
struct PciPorts;

impl PciPorts {
    fn select(place: DeviceFunction, offset: u8) {
        let DeviceFunction { bus, device, function } = place;
        let address = CONFIG_ENABLE
            | u32::from(bus) << 16
            | u32::from(device) << 11
            | u32::from(function) << 8
            | u32::from(offset & !3);
        // SAFETY: the address port; nothing happens before the data port is used, and only one CPU
        // uses them: the first at boot, the last when all programs have ended.
        unsafe { Port::<u32>::new(CONFIG_ADDRESS).write(address) };
    }
}

impl ConfigurationAccess for PciPorts {
    fn read_word(&self, place: DeviceFunction, offset: u8) -> u32 {
        PciPorts::select(place, offset);
        // SAFETY: reading configuration space changes nothing that this kernel uses.
        unsafe { Port::<u32>::new(CONFIG_DATA).read() }
    }

    fn write_word(&mut self, place: DeviceFunction, offset: u8, data: u32) {
        PciPorts::select(place, offset);
        // SAFETY: only the library writes, to the device that it drives.
        unsafe { Port::<u32>::new(CONFIG_DATA).write(data) };
    }

    unsafe fn unsafe_clone(&self) -> Self {
        PciPorts
    }
}
