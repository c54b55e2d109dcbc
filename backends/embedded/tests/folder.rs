//! Folders that are damaged, somebody else's, or no folders.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{at, client, pair, pairs, table};
use fjall::{Database, KeyspaceCreateOptions};
use peristyle_core::model::Row;
use peristyle_core::{Backend, Error, ErrorKind};
use peristyle_embedded::{Embedded, NativeDatabase};

fn refused(folder: &Path) -> Error {
    let error = Embedded::open(&at(folder)).map(drop).unwrap_err();
    assert!(error.to_string().contains(&*folder.to_string_lossy()), "{error}");
    assert!(!error.to_string().contains('\n'), "{error}");
    error
}

fn native(engine: &Embedded) -> Database {
    engine.native().downcast_ref::<NativeDatabase>().unwrap().database().unwrap()
}

#[tokio::test]
async fn a_folder_is_made_where_there_is_none() {
    let parent = tempfile::tempdir().unwrap();
    let (client, engine) = client(&at(&parent.path().join("a/b"))).unwrap();
    table(&client, pairs()).await;
    assert!(engine.folder().is_dir());
}

#[tokio::test]
async fn a_temporary_folder_goes_with_the_engine() {
    let (client, engine) = client(&peristyle_embedded::EmbeddedConfig::temporary()).unwrap();
    let folder = engine.folder().to_owned();
    assert!(folder.is_dir());
    client.close().await.unwrap();
    assert!(!folder.exists());
}

#[test]
fn a_temporary_folder_goes_when_the_engine_is_dropped_without_a_close() {
    let engine = Embedded::open(&peristyle_embedded::EmbeddedConfig::temporary()).unwrap();
    let folder = engine.folder().to_owned();
    drop(engine);
    assert!(!folder.exists());
}

#[test]
fn a_second_engine_in_the_process_is_refused_and_opens_after_the_first_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let first = Embedded::open(&at(folder.path())).unwrap();
    assert_eq!(refused(folder.path()).kind(), ErrorKind::Locked);
    drop(first);
    Embedded::open(&at(folder.path())).map(drop).unwrap();
}

#[test]
fn a_file_where_the_folder_should_be_is_named() {
    let parent = tempfile::tempdir().unwrap();
    let file = parent.path().join("data");
    fs::write(&file, "no folder").unwrap();
    let error = refused(&file);
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.to_string().contains("is a file"), "{error}");
    let error = refused(&file.join("below"));
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    // Nobody makes folders here, the superuser included.
    let error = refused(Path::new("/proc/peristyle"));
    assert!(matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::Corrupt), "{error}");
}

#[test]
fn files_of_something_else_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("thesis.txt"), "do not touch").unwrap();
    let error = refused(folder.path());
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.to_string().contains("thesis.txt"), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_making_that_was_interrupted_is_done_again() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("lock"), "").unwrap();
    fs::write(folder.path().join("0.jnl"), "").unwrap();
    fs::create_dir(folder.path().join("keyspaces")).unwrap();
    Embedded::open(&at(folder.path())).map(drop).unwrap();
}

#[test]
fn a_database_of_another_program_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let other = Database::builder(folder.path()).open().unwrap();
    other.keyspace("theirs", KeyspaceCreateOptions::default).unwrap();
    drop(other);
    let error = refused(folder.path());
    assert!(error.to_string().contains("another program"), "{error}");
}

#[test]
fn a_newer_format_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Embedded::open(&at(folder.path())).unwrap();
    let database = native(&engine);
    let catalogue = database.keyspace("catalogue", KeyspaceCreateOptions::default).unwrap();
    catalogue.insert("format", "2").unwrap();
    drop((catalogue, database, engine));
    let error = refused(folder.path());
    assert_eq!(error.kind(), ErrorKind::SchemaMismatch, "{error}");
    assert!(error.to_string().contains("format 2"), "{error}");
    fs::write(folder.path().join("version"), b"FJL\x04").unwrap();
    assert_eq!(refused(folder.path()).kind(), ErrorKind::Corrupt);
}

/// Makes a folder with rows in a table file and in the journal.
async fn folder_with_rows(folder: &Path) {
    let (client, engine) = client(&at(folder)).unwrap();
    let rows = table(&client, pairs()).await;
    rows.put_all((0..100).map(|id| pair(id, "in a table file"))).await.unwrap().into_result().unwrap();
    let database = native(&engine);
    let stored = database.keyspace("rows-1", KeyspaceCreateOptions::default).unwrap();
    stored.rotate_memtable_and_wait().unwrap();
    rows.put_all((100..200).map(|id| pair(id, "in the journal"))).await.unwrap().into_result().unwrap();
    drop((stored, database));
    client.close().await.unwrap();
    // Reading the journals gives back what they take beyond their content.
    Embedded::open(&at(folder)).map(drop).unwrap();
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

fn copy(from: &Path, to: &Path) {
    for file in files(from) {
        let target = to.join(file.strip_prefix(from).unwrap());
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(&file, target).unwrap();
    }
}

/// Ways to damage a file of this content.
fn damages(content: &[u8]) -> Vec<Option<Vec<u8>>> {
    let mut damages = vec![None, Some(Vec::new())];
    for part in 0..8 {
        let place = content.len() * part / 8;
        damages.push(content.get(..place).map(<[u8]>::to_vec));
        let mut flipped = content.to_vec();
        if let Some(byte) = flipped.get_mut(place) {
            *byte ^= 0x55;
        }
        damages.push(Some(flipped));
    }
    damages
}

/// Opens the folder and reads every row: whatever comes is an error that says so, or what was written.
async fn read_all(folder: &Path) -> Result<(), Error> {
    let (client, _engine) = client(&at(folder))?;
    let rows = client.table(pairs()).await?;
    for id in 0..200 {
        let row: Option<Row> = rows.get(id).await?;
        let text = if id < 100 { "in a table file" } else { "in the journal" };
        if let Some(row) = row {
            assert_eq!(row, pair(id, text));
        }
    }
    rows.put(&pair(-1, "new")).await?;
    client.close().await
}

#[tokio::test]
async fn damage_to_any_file_is_an_error_or_harmless_and_never_a_panic_or_a_wrong_row() {
    let good = tempfile::tempdir().unwrap();
    folder_with_rows(good.path()).await;
    assert!(read_all(good.path()).await.is_ok());
    let mut errors = 0;
    for file in files(good.path()) {
        let content = fs::read(&file).unwrap();
        for damage in damages(&content) {
            let bad = tempfile::tempdir().unwrap();
            copy(good.path(), bad.path());
            let target = bad.path().join(file.strip_prefix(good.path()).unwrap());
            match damage {
                None => fs::remove_file(&target).unwrap(),
                Some(content) => fs::write(&target, content).unwrap(),
            }
            if let Err(error) = read_all(bad.path()).await {
                let expected = [ErrorKind::Corrupt, ErrorKind::SchemaMismatch, ErrorKind::NotFound];
                assert!(expected.contains(&error.kind()), "{}: {error}", target.display());
                errors += 1;
            }
        }
    }
    assert!(errors > 20, "{errors}");
}
