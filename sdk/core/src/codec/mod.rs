//! Bytes of keys and values.
