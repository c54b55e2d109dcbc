use proptest::prelude::*;
use thrift::protocol::{TFieldIdentifier, TStructIdentifier};

use super::*;
use crate::wire::hbase2::{TColumnValue, TResult};

const WIRES: [Wire; 4] = [
    Wire { transport: Transport::Buffered, protocol: Protocol::Binary },
    Wire { transport: Transport::Buffered, protocol: Protocol::Compact },
    Wire { transport: Transport::Framed, protocol: Protocol::Binary },
    Wire { transport: Transport::Framed, protocol: Protocol::Compact },
];
const CALL: Pending<'static> = Pending { method: "get", sequence: 7 };

/// The bytes of a message as a gateway sends it.
fn reply(wire: Wire, kind: TMessageType, sequence: i32, body: impl Fn(&mut dyn TOutputProtocol)) -> Bytes {
    let mut bytes = Vec::new();
    let write = |out: &mut dyn TOutputProtocol| {
        out.write_message_begin(&TMessageIdentifier::new("get", kind, sequence)).unwrap();
        body(out);
        out.write_message_end().unwrap();
    };
    match wire.protocol {
        Protocol::Binary => write(&mut TBinaryOutputProtocol::new(&mut bytes, true)),
        Protocol::Compact => write(&mut TCompactOutputProtocol::new(&mut bytes)),
    }
    match wire.transport {
        Transport::Buffered | Transport::Http => bytes.into(),
        Transport::Framed => [&u32::try_from(bytes.len()).unwrap().to_be_bytes(), bytes.as_slice()].concat().into(),
    }
}

fn result_of(id: i16, ty: TType, value: impl Fn(&mut dyn TOutputProtocol)) -> impl Fn(&mut dyn TOutputProtocol) {
    move |out| {
        out.write_struct_begin(&TStructIdentifier::new("result")).unwrap();
        out.write_field_begin(&TFieldIdentifier::new("field", ty, id)).unwrap();
        value(out);
        out.write_field_end().unwrap();
        out.write_field_stop().unwrap();
        out.write_struct_end().unwrap();
    }
}

fn row() -> TResult {
    let cell =
        TColumnValue { family: b"f".into(), qualifier: b"q".into(), value: vec![0xff; 300], timestamp: Some(-1) };
    TResult { row: Some(b"\0r".into()), column_values: vec![cell.clone(), cell] }
}

fn write_row(out: &mut dyn TOutputProtocol) {
    row().write_to_out_protocol(out).unwrap();
}

fn exception(out: &mut dyn TOutputProtocol) {
    out.write_struct_begin(&TStructIdentifier::new("TIOError")).unwrap();
    out.write_field_begin(&TFieldIdentifier::new("message", TType::String, 1)).unwrap();
    out.write_string("no").unwrap();
    out.write_field_end().unwrap();
    out.write_field_begin(&TFieldIdentifier::new("canRetry", TType::Bool, 2)).unwrap();
    out.write_bool(true).unwrap();
    out.write_field_end().unwrap();
    out.write_field_stop().unwrap();
    out.write_struct_end().unwrap();
}

#[test]
fn a_reply_that_comes_in_pieces_is_read_when_it_is_whole() {
    for wire in WIRES {
        let bytes = reply(wire, TMessageType::Reply, 7, result_of(0, TType::Struct, write_row));
        for end in 0..bytes.len() {
            let part = wire.decode(&bytes.slice(..end), CALL, read_struct::<TResult>).unwrap();
            assert!(
                matches!(part, Decoded::Incomplete(least) if least > end && least <= bytes.len()),
                "{wire:?} {end}"
            );
        }
        assert_eq!(wire.decode(&bytes, CALL, read_struct::<TResult>), Ok(Decoded::Reply(Ok(row()))), "{wire:?}");
    }
}

#[test]
fn an_exception_is_told_with_its_message() {
    for wire in WIRES {
        let bytes = reply(wire, TMessageType::Reply, 7, result_of(1, TType::Struct, exception));
        let told = ServerException { id: 1, message: "no".into(), can_retry: Some(true) };
        assert_eq!(wire.decode(&bytes, CALL, read_struct::<TResult>), Ok(Decoded::Reply(Err(told))), "{wire:?}");
    }
}

#[test]
fn a_reply_to_another_request_is_refused() {
    for wire in WIRES {
        let bytes = reply(wire, TMessageType::Reply, 6, result_of(0, TType::Struct, write_row));
        let garbled = Garbled::Sequence { expected: 7, found: 6 };
        assert_eq!(wire.decode(&bytes, CALL, read_struct::<TResult>), Err(garbled), "{wire:?}");
    }
}

#[test]
fn bytes_behind_a_reply_and_a_reply_without_a_result_are_refused() {
    for wire in WIRES {
        let nothing = reply(wire, TMessageType::Reply, 7, |out| out.write_field_stop().unwrap());
        assert_eq!(wire.decode(&nothing, CALL, read_nothing), Ok(Decoded::Reply(Ok(()))), "{wire:?}");
        assert!(matches!(wire.decode(&nothing, CALL, read_bool), Err(Garbled::Malformed(_))), "{wire:?}");
        let more = Bytes::from([&nothing[..], &[0]].concat());
        assert!(matches!(wire.decode(&more, CALL, read_nothing), Err(Garbled::Malformed(_))), "{wire:?}");
    }
}

#[test]
fn a_frame_of_gigabytes_is_refused_before_it_is_waited_for() {
    let wire = Wire { transport: Transport::Framed, protocol: Protocol::Binary };
    assert_eq!(wire.decode(&Bytes::from_static(&[0x7f, 0xff, 0xff, 0xff]), CALL, read_nothing), Err(Garbled::TooLong));
}

proptest! {
    #[test]
    fn bytes_of_any_kind_never_panic(place in 0_usize..4, bytes: Vec<u8>) {
        let _ = WIRES[place].decode(&bytes.into(), CALL, read_list::<TResult>);
    }

    #[test]
    fn a_reply_with_a_wrong_byte_never_panics(place in 0_usize..4, at: prop::sample::Index, byte: u8) {
        let mut bytes = reply(WIRES[place], TMessageType::Reply, 7, result_of(0, TType::Struct, write_row)).to_vec();
        *at.get_mut(&mut bytes) = byte;
        let _ = WIRES[place].decode(&bytes.into(), CALL, read_struct::<TResult>);
    }
}
