//! YCSB's operations on the SDK: a table of text keys and a few fields, read, scanned, written and deleted, and what YCSB's
//! status is of each error. The Java binding and `tuner ycsb` both stand on it, so that each reads what the other wrote.

mod settings;
mod status;
mod store;
mod writer;

pub use self::settings::{FieldType, KEY_COLUMN, SETTINGS, Settings, uri};
pub use self::status::Status;
pub use self::store::{Fields, Record, Store};
pub use self::writer::Writer;
