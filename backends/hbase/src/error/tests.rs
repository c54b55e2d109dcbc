use super::*;

fn told(id: i16, message: &str, can_retry: Option<bool>) -> Error {
    let exception = ServerException { id, message: message.to_owned(), can_retry };
    from_exception(&exception, "put", "books", true)
}

/// Texts as HBase 2.6.1 gave them.
#[test]
fn every_text_of_a_gateway_has_its_kind_and_outcome() {
    use ErrorKind::{
        AlreadyExists, Internal, InvalidArgument, NotFound, Overloaded, PermissionDenied, TooLarge, Unavailable,
    };
    use Outcome::{NotApplied, Unknown};
    let cases = [
        ("books", Some(false), NotFound, NotApplied),
        ("ns:books", Some(false), NotFound, NotApplied),
        ("Failed 1 action: books: 1 time, servers with issues: null", Some(true), NotFound, NotApplied),
        ("Failed 3 actions: ns:books: 3 times, servers with issues: null", Some(true), NotFound, NotApplied),
        (
            "Failed 1 action: org.apache.hadoop.hbase.regionserver.NoSuchColumnFamilyException: Column family zz does not exist \
             in region books,,1.a. in table 'books'",
            Some(true),
            NotFound,
            NotApplied,
        ),
        ("books is disabled.", Some(false), Unavailable, NotApplied),
        (
            "Failed 1 action: NotServingRegionException: 1 time, servers with issues: h,1,2",
            Some(true),
            Unavailable,
            Unknown,
        ),
        ("org.apache.hadoop.hbase.TableExistsException: books", Some(false), AlreadyExists, NotApplied),
        ("org.apache.hadoop.hbase.TableNotDisabledException: books", Some(false), Unavailable, NotApplied),
        ("org.apache.hadoop.hbase.NamespaceNotFoundException: iot", Some(false), NotFound, NotApplied),
        (
            "org.apache.hadoop.hbase.DoNotRetryIOException: Field is not a long, it's 4 bytes wide",
            None,
            InvalidArgument,
            NotApplied,
        ),
        ("Cell[books/f:q] with size 10485792 exceeds limit of 10485760 bytes", Some(false), TooLarge, NotApplied),
        ("org.apache.hadoop.hbase.RegionTooBusyException: Over memstore limit=1", Some(true), Overloaded, NotApplied),
        ("org.apache.hadoop.hbase.security.AccessDeniedException: no", Some(false), PermissionDenied, NotApplied),
        ("Failed 1 action: IOException: 1 time, servers with issues: h,1,2", Some(true), Unavailable, Unknown),
        ("something new", Some(false), Internal, Unknown),
    ];
    for (text, can_retry, kind, outcome) in cases {
        let error = told(1, text, can_retry);
        assert_eq!((error.kind(), error.outcome()), (kind, outcome), "{text}");
    }
    let bare = told(0, "Internal error processing put", None);
    assert_eq!((bare.kind(), bare.outcome()), (Internal, Unknown));
}

#[test]
fn a_stack_trace_becomes_one_short_line() {
    let trace = format!("java.io.IOException: {}\n\tat org.apache.hadoop", "é".repeat(5_000));
    let message = told(1, &trace, None).to_string();
    assert!(message.len() < 700 && !message.contains('\n') && message.contains('…'), "{message}");
}

#[test]
fn a_permanent_fault_is_not_tried_again_whatever_the_gateway_says() {
    let family = "NoSuchColumnFamilyException: Column family zz does not exist";
    assert_eq!(told(1, family, Some(true)).retry(), Retry::Never);
    assert_eq!(told(1, "RegionTooBusyException", Some(false)).retry(), Retry::Later);
}

#[test]
fn a_name_alone_is_a_missing_table_unless_it_was_to_be_created() {
    let exception = ServerException { id: 1, message: "ns:books".to_owned(), can_retry: Some(false) };
    assert_eq!(from_exception(&exception, "disableTable", "books", true).kind(), ErrorKind::NotFound);
    assert_eq!(from_exception(&exception, "createTable", "books", true).kind(), ErrorKind::AlreadyExists);
    assert_eq!(from_exception(&exception, "get", "book", false).kind(), ErrorKind::Internal);
}
