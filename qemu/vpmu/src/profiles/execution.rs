//! Events of Intel's profiles by the number of micro-operations that execute in a cycle, and by
//! port. Only the out-of-order pipeline has ports; the interval pipeline divides cycles in
//! proportion to its samples.

use tally_model::Signal::{self, *};

use super::shared::e;
use crate::event::Event;

/// Cycles in which at least 1, 2, 3 and 4 micro-operations execute.
const FROM_1: &[Signal] = &[Executed1, Executed2, Executed3, Executed4, Executed5];
const FROM_2: &[Signal] = &[Executed2, Executed3, Executed4, Executed5];
const FROM_3: &[Signal] = &[Executed3, Executed4, Executed5];
const FROM_4: &[Signal] = &[Executed4, Executed5];

/// Events of both profiles.
#[rustfmt::skip] // One event in as few lines as possible, as in the vendor's table.
pub(super) const COMMON: &[Event] = &[
    e("EXE_ACTIVITY.1_PORTS_UTIL", 0xa6, 0x02, &[Executed1],
        "Cycles in which one micro-operation executed."),
    e("EXE_ACTIVITY.2_PORTS_UTIL", 0xa6, 0x04, &[Executed2],
        "Cycles in which two micro-operations executed."),
    e("EXE_ACTIVITY.3_PORTS_UTIL", 0xa6, 0x08, &[Executed3],
        "Cycles in which three micro-operations executed."),
    e("EXE_ACTIVITY.4_PORTS_UTIL", 0xa6, 0x10, &[Executed4],
        "Cycles in which four micro-operations executed."),
    e("UOPS_EXECUTED.THREAD", 0xb1, 0x01, Signal::PORTS,
        "Micro-operations executed: operations of units, loads, addresses of stores.").out_of_order(),
    e("UOPS_EXECUTED.STALL_CYCLES", 0xb1, 0x01, Signal::IDLE,
        "Cycles in which nothing executed.").cmask(1).inv().out_of_order(),
    e("UOPS_EXECUTED.CYCLES_GE_1", 0xb1, 0x01, FROM_1,
        "Cycles in which at least one micro-operation executed.").cmask(1).out_of_order(),
    e("UOPS_EXECUTED.CYCLES_GE_2", 0xb1, 0x01, FROM_2,
        "Cycles in which at least two micro-operations executed.").cmask(2).out_of_order(),
    e("UOPS_EXECUTED.CYCLES_GE_3", 0xb1, 0x01, FROM_3,
        "Cycles in which at least three micro-operations executed.").cmask(3),
    e("UOPS_EXECUTED.CYCLES_GE_4", 0xb1, 0x01, FROM_4,
        "Cycles in which at least four micro-operations executed.").cmask(4).out_of_order(),
];

/// Events of Ice Lake only, or with another encoding.
#[rustfmt::skip] // As above.
pub(super) const ICE_LAKE: &[Event] = &[
    e("r80a6", 0xa6, 0x80, &[IdleUnits],
        "Cycles in which nothing executed while units alone were at work.").unlisted(),
    e("RS_EVENTS.EMPTY_CYCLES", 0x5e, 0x01, &[IdleEmpty],
        "Cycles in which the scheduler was empty."),
    e("RS_EVENTS.EMPTY_END", 0x5e, 0x01, &[IdleEmptyEnds],
        "Times at which the scheduler was empty and got a micro-operation.")
            .cmask(1).inv().edge().out_of_order(),
    e("UOPS_DISPATCHED.PORT_0", 0xa1, 0x01, &[Port0],
        "Micro-operations executed on port 0.").out_of_order(),
    e("UOPS_DISPATCHED.PORT_1", 0xa1, 0x02, &[Port1],
        "Micro-operations executed on port 1.").out_of_order(),
    e("UOPS_DISPATCHED.PORT_2_3", 0xa1, 0x04, &[Port2, Port3],
        "Loads executed.").out_of_order(),
    e("UOPS_DISPATCHED.PORT_5", 0xa1, 0x20, &[Port5],
        "Micro-operations executed on port 5.").out_of_order(),
    e("UOPS_DISPATCHED.PORT_6", 0xa1, 0x40, &[Port6],
        "Micro-operations executed on port 6.").out_of_order(),
    e("UOPS_DISPATCHED.PORT_7_8", 0xa1, 0x80, &[Port7, Port8],
        "Addresses of stores computed.").out_of_order(),
];

/// Events of Sapphire Rapids only, or with another encoding. In the model port 10 is the fifth port
/// for integers and port 11 the third for loads, contrary to the events' names.
#[rustfmt::skip] // As above.
pub(super) const SAPPHIRE_RAPIDS: &[Event] = &[
    e("EXE_ACTIVITY.EXE_BOUND_0_PORTS", 0xa6, 0x80, &[IdleUnits],
        "Cycles in which nothing executed while units alone were at work."),
    e("EXE_ACTIVITY.2_3_PORTS_UTIL", 0xa6, 0x0c, &[Executed2, Executed3],
        "Cycles in which two or three micro-operations executed."),
    e("RS_EMPTY.CYCLES", 0xa5, 0x07, &[IdleEmpty],
        "Cycles in which the scheduler was empty."),
    e("RS_EMPTY.COUNT", 0xa5, 0x07, &[IdleEmptyEnds],
        "Times at which the scheduler was empty and got a micro-operation.")
            .cmask(1).inv().edge().out_of_order(),
    e("RS.EMPTY_RESOURCE", 0xa5, 0x01, &[IdleBlocked],
        "Cycles in which the scheduler was empty and dispatch blocked.").out_of_order(),
    e("UOPS_DISPATCHED.PORT_0", 0xb2, 0x01, &[Port0],
        "Micro-operations executed on port 0.").out_of_order(),
    e("UOPS_DISPATCHED.PORT_1", 0xb2, 0x02, &[Port1],
        "Micro-operations executed on port 1.").out_of_order(),
    e("UOPS_DISPATCHED.PORT_2_3_10", 0xb2, 0x04, &[Port2, Port3, Port11],
        "Loads executed.").out_of_order(),
    e("UOPS_DISPATCHED.PORT_5_11", 0xb2, 0x20, &[Port5, Port10],
        "Micro-operations executed on port 5 and on the fifth one for integers.").out_of_order(),
    e("UOPS_DISPATCHED.PORT_6", 0xb2, 0x40, &[Port6],
        "Micro-operations executed on port 6.").out_of_order(),
    e("UOPS_DISPATCHED.PORT_7_8", 0xb2, 0x80, &[Port7, Port8],
        "Addresses of stores computed.").out_of_order(),
];
