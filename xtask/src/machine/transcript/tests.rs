//! Tests of frames that arrive in pieces, or damaged.

use super::*;
use tally_abi::wire::MAX_FRAME_BYTES;

fn frame(message: Message<'_>) -> Vec<u8> {
    message.encode(&mut [0; MAX_FRAME_BYTES]).unwrap().to_vec()
}

#[test]
fn split_and_corrupt_frames_are_handled() {
    let mut bytes = b"firmware\0".to_vec();
    bytes.extend(frame(Message::Booted {
        cpus: 1,
        memory_bytes: 0,
        seed: 9,
        tsc_hz: 1,
        pmu: None,
    }));
    bytes.extend(frame(Message::Output { pid: 1, fd: 1, bytes: b"hello " }));
    bytes.extend([7, 7, 7, 0]);
    bytes.extend(frame(Message::Output { pid: 1, fd: 2, bytes: b"there" }));
    bytes.extend(frame(Message::Done { status: 3 }));
    let (mut said, mut heard) = (Transcript::default(), Vec::new());
    for piece in bytes.chunks(5) {
        said.follow(&mut &*piece, &mut |output| heard.extend_from_slice(&output.bytes)).unwrap();
    }
    assert_eq!(heard, b"hello there");
    assert_eq!((said.text().as_str(), said.unreadable), ("hello there", 1));
    assert!(said.warning().unwrap().contains("incomplete: 1 "));
    assert_eq!(Transcript::default().warning(), None);
    assert_eq!((said.booted.unwrap().seed, said.done), (9, Some(3)));
}

#[test]
fn an_exit_status_is_its_low_byte() {
    let mut said = Transcript::default();
    let exited = |status| frame(Message::Exited { pid: 1, program: "prog", status });
    let bytes = [exited(300), exited(3)].concat();
    said.follow(&mut &*bytes, &mut |_| {}).unwrap();
    assert_eq!(said.exits, [("prog".to_owned(), 44), ("prog".to_owned(), 3)]);
}
