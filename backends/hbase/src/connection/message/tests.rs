use proptest::prelude::*;
use thrift::protocol::{
    TFieldIdentifier, TListIdentifier, TMapIdentifier, TMessageIdentifier, TMessageType, TOutputProtocol,
    TStructIdentifier, TType,
};
use thrift::{ApplicationError, ApplicationErrorKind};

use super::*;
use crate::wire::hbase2::{TColumnValue, TResult, TableArgs};

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
fn a_call_begins_as_the_library_begins_it() {
    for wire in WIRES {
        for sequence in [-1, 7, 1_000_000] {
            let theirs = reply(wire, TMessageType::Call, sequence, |out| {
                TableArgs { table: b"t".into() }.write_to_out_protocol(out).unwrap();
            });
            let mut ours = Vec::new();
            wire.encode(Pending { method: "get", sequence }, &TableArgs { table: b"t".into() }, &mut ours).unwrap();
            assert_eq!(ours, theirs, "{wire:?} {sequence}");
        }
    }
}

/// One field of each type, in a struct in a list in a map.
fn write_everything(out: &mut dyn TOutputProtocol) {
    out.write_map_begin(&TMapIdentifier::new(TType::I16, TType::List, 1)).unwrap();
    out.write_i16(-3).unwrap();
    out.write_list_begin(&TListIdentifier::new(TType::Struct, 20)).unwrap();
    for _ in 0..20 {
        out.write_struct_begin(&TStructIdentifier::new("all")).unwrap();
        for (ty, id) in [
            (TType::Bool, 1),
            (TType::I08, 2),
            (TType::I16, 40),
            (TType::I32, 300),
            (TType::I64, 301),
            (TType::Double, 5),
            (TType::String, 6),
            (TType::Map, 7),
        ] {
            out.write_field_begin(&TFieldIdentifier::new("field", ty, id)).unwrap();
            match ty {
                TType::Bool => out.write_bool(true).unwrap(),
                TType::I08 => out.write_i8(-1).unwrap(),
                TType::I16 => out.write_i16(i16::MIN).unwrap(),
                TType::I32 => out.write_i32(i32::MIN).unwrap(),
                TType::I64 => out.write_i64(i64::MIN).unwrap(),
                TType::Double => out.write_double(0.5).unwrap(),
                TType::String => out.write_bytes(&[7; 200]).unwrap(),
                _ => out.write_map_begin(&TMapIdentifier::new(TType::Bool, TType::Bool, 0)).unwrap(),
            }
            out.write_field_end().unwrap();
        }
        out.write_field_stop().unwrap();
        out.write_struct_end().unwrap();
    }
}

#[test]
fn fields_that_are_not_known_are_passed_over() {
    for wire in WIRES {
        let bytes = reply(wire, TMessageType::Reply, 7, result_of(9, TType::Map, write_everything));
        assert_eq!(wire.decode(&bytes, CALL, read_nothing), Ok(Decoded::Reply(Ok(()))), "{wire:?}");
        for end in 0..bytes.len() {
            let part = wire.decode(&bytes.slice(..end), CALL, read_nothing).unwrap();
            assert!(matches!(part, Decoded::Incomplete(_)), "{wire:?} {end}");
        }
    }
}

#[test]
fn a_method_that_the_gateway_lacks_is_told() {
    for wire in WIRES {
        let bytes = reply(wire, TMessageType::Exception, 7, |out| {
            let error = ApplicationError::new(ApplicationErrorKind::UnknownMethod, "get");
            thrift::Error::write_application_error_to_out_protocol(&error, out).unwrap();
        });
        let told = ServerException { id: 0, message: "unknown method: get".into(), can_retry: None };
        assert_eq!(wire.decode(&bytes, CALL, read_nothing), Ok(Decoded::Reply(Err(told))), "{wire:?}");
    }
}

#[test]
fn structs_without_end_in_each_other_are_refused() {
    let bytes = [&[0x80, 1, 0, 2, 0, 0, 0, 3][..], b"get", &[0, 0, 0, 7], &[12, 0, 9].repeat(10_000), &[0]].concat();
    let outcome = WIRES[0].decode(&bytes.into(), CALL, read_nothing);
    assert!(matches!(&outcome, Err(Garbled::Malformed(what)) if what.contains("deep")), "{outcome:?}");
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
