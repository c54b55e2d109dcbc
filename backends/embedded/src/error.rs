//! The engine's errors as the SDK's.

use std::io;
use std::path::Path;

use fjall::{Error as Fjall, LsmError};
use peristyle_core::{Error, ErrorKind, Outcome};

/// What went wrong below, told with the folder and with what to check.
pub(crate) fn from_fjall(error: Fjall, folder: &Path) -> Error {
    let folder = folder.display();
    let (kind, message) = match &error {
        Fjall::Io(cause) | Fjall::Storage(LsmError::Io(cause)) => io_fault(cause, &folder),
        Fjall::Locked => (
            ErrorKind::Locked,
            format!("{folder} is open in another process, or twice in this one; close the other first"),
        ),
        Fjall::InvalidVersion(Some(version)) => (
            ErrorKind::SchemaMismatch,
            format!(
                "{folder} was written in format {version}, which this version can't read; export and import its data"
            ),
        ),
        Fjall::InvalidVersion(None) | Fjall::Storage(LsmError::InvalidVersion(_)) => (
            ErrorKind::Corrupt,
            format!(
                "{folder} has a garbled format version, or one from a newer release; restore it from a copy or upgrade"
            ),
        ),
        Fjall::Poisoned => (
            ErrorKind::Internal,
            format!(
                "the engine in {folder} stopped writing after a failed write; check disk and space, then open it again"
            ),
        ),
        Fjall::KeyspaceDeleted => (ErrorKind::NotFound, "the table was dropped".to_owned()),
        _ => (ErrorKind::Corrupt, corrupt_message(&folder)),
    };
    Error::new(kind, message).with_source(error)
}

/// The same for what the engine reads and writes in the folder by itself.
pub(crate) fn from_io(error: io::Error, folder: &Path) -> Error {
    let (kind, message) = io_fault(&error, &folder.display());
    Error::new(kind, message).with_source(error)
}

/// For a folder that can't be what it should be.
pub(crate) fn corrupt(folder: &Path) -> Error {
    Error::new(ErrorKind::Corrupt, corrupt_message(&folder.display()))
}

fn corrupt_message(folder: &impl std::fmt::Display) -> String {
    format!("the data in {folder} is damaged; restore the folder from a copy, or move it away to start anew")
}

fn io_fault(cause: &io::Error, folder: &impl std::fmt::Display) -> (ErrorKind, String) {
    use io::ErrorKind as Io;
    match cause.kind() {
        Io::StorageFull | Io::QuotaExceeded | Io::FileTooLarge => {
            (ErrorKind::DiskFull, format!("no space left for {folder} ({cause}); free some, then open it again"))
        }
        Io::PermissionDenied | Io::ReadOnlyFilesystem => (
            ErrorKind::PermissionDenied,
            format!("{folder} can't be written ({cause}); check its owner and permissions"),
        ),
        Io::NotADirectory | Io::AlreadyExists => {
            (ErrorKind::InvalidArgument, format!("{folder} is no folder ({cause}); name another one"))
        }
        Io::NotFound | Io::UnexpectedEof | Io::InvalidData | Io::InvalidInput | Io::IsADirectory => {
            (ErrorKind::Corrupt, corrupt_message(folder))
        }
        _ => (ErrorKind::Internal, format!("reading or writing {folder} failed: {cause}; check the disk")),
    }
}

/// For a write that the engine refused before it touched anything.
pub(crate) fn not_applied(error: Error) -> Error {
    error.with_outcome(Outcome::NotApplied)
}

/// For requests after [`close`](peristyle_core::Backend::close).
pub(crate) fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the embedded engine is closed; open it again")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_has_a_kind_and_names_the_folder() {
        let io = |kind: io::ErrorKind| Fjall::Io(io::Error::from(kind));
        let cases = [
            (Fjall::Locked, ErrorKind::Locked),
            (io(io::ErrorKind::StorageFull), ErrorKind::DiskFull),
            (io(io::ErrorKind::QuotaExceeded), ErrorKind::DiskFull),
            (io(io::ErrorKind::FileTooLarge), ErrorKind::DiskFull),
            (Fjall::Storage(LsmError::Io(io::ErrorKind::StorageFull.into())), ErrorKind::DiskFull),
            (io(io::ErrorKind::PermissionDenied), ErrorKind::PermissionDenied),
            (io(io::ErrorKind::ReadOnlyFilesystem), ErrorKind::PermissionDenied),
            (io(io::ErrorKind::NotADirectory), ErrorKind::InvalidArgument),
            (io(io::ErrorKind::NotFound), ErrorKind::Corrupt),
            (io(io::ErrorKind::UnexpectedEof), ErrorKind::Corrupt),
            (io(io::ErrorKind::BrokenPipe), ErrorKind::Internal),
            (Fjall::InvalidVersion(None), ErrorKind::Corrupt),
            (Fjall::InvalidVersion(Some(fjall::FormatVersion::V2)), ErrorKind::SchemaMismatch),
            (Fjall::Storage(LsmError::Unrecoverable), ErrorKind::Corrupt),
            (Fjall::InvalidTrailer, ErrorKind::Corrupt),
            (Fjall::Unrecoverable, ErrorKind::Corrupt),
            (Fjall::Poisoned, ErrorKind::Internal),
        ];
        for (cause, kind) in cases {
            let shown = format!("{cause:?}");
            let error = from_fjall(cause, Path::new("/data/x"));
            assert_eq!(error.kind(), kind, "{shown}");
            assert!(error.to_string().contains("/data/x"), "{error}");
        }
    }
}
