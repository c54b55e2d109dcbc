//! The native methods.

use std::collections::HashMap;
use std::fmt;

use jni::errors::ThrowRuntimeExAndDefault;
use jni::objects::{JByteArray, JClass, JIntArray, JObjectArray, JString};
use jni::sys::{jint, jlong};
use jni::{Env, EnvUnowned};
use peristyle_ycsb::{Fields, Status, Store};

use crate::{sessions, wire};

/// What becomes a Java exception.
#[derive(Debug)]
pub(crate) enum Failure {
    Jni(jni::errors::Error),
    Peristyle(peristyle::Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Jni(error) => error.fmt(f),
            Self::Peristyle(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Failure {}

impl From<jni::errors::Error> for Failure {
    fn from(error: jni::errors::Error) -> Self {
        Self::Jni(error)
    }
}

impl From<peristyle::Error> for Failure {
    fn from(error: peristyle::Error) -> Self {
        Self::Peristyle(error)
    }
}

type Result<T> = std::result::Result<T, Failure>;

#[unsafe(no_mangle)]
extern "system" fn Java_io_peristyle_ycsb_PeristyleClient_open<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    pairs: JObjectArray<'local, JString<'local>>,
) -> jlong {
    let work = |env: &mut Env<'local>| -> Result<jlong> {
        let mut properties = HashMap::new();
        for place in (0..pairs.len(env)?).step_by(2) {
            let (name, value) = (pairs.get_element(env, place)?, pairs.get_element(env, place + 1)?);
            properties.insert(name.try_to_string(env)?, value.try_to_string(env)?);
        }
        Ok(sessions::open(&properties)?)
    };
    env.with_env(work).resolve::<ThrowRuntimeExAndDefault>()
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_peristyle_ycsb_PeristyleClient_fields<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
) -> JObjectArray<'local, JString<'local>> {
    let work = |env: &mut Env<'local>| -> Result<_> {
        let session = sessions::get(handle)?;
        let fields = session.store.fields();
        let array = JObjectArray::<JString<'_>>::new(env, fields.len(), JString::null())?;
        for (place, field) in fields.iter().enumerate() {
            let field = env.new_string(field)?;
            array.set_element(env, place, field)?;
        }
        Ok(array)
    };
    env.with_env(work).resolve::<ThrowRuntimeExAndDefault>()
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_peristyle_ycsb_PeristyleClient_read<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    key: JString<'local>,
    fields: JIntArray<'local>,
) -> JByteArray<'local> {
    let work = |env: &mut Env<'local>| -> Result<_> {
        let session = sessions::get(handle)?;
        let (shared, store, key) = (&session.shared, &session.store, key.try_to_string(env)?);
        let fields = choose(env, &fields, store)?;
        let answer = match shared.runtime.block_on(store.read(&key, fields)) {
            Ok(Some(row)) => wire::encode(Status::Ok, &[row], store),
            Ok(None) => wire::encode(Status::NotFound, &[], store),
            Err(error) => wire::encode(shared.failed(&error), &[], store),
        };
        Ok(env.byte_array_from_slice(&answer)?)
    };
    env.with_env(work).resolve::<ThrowRuntimeExAndDefault>()
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_peristyle_ycsb_PeristyleClient_scan<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    start: JString<'local>,
    count: jint,
    fields: JIntArray<'local>,
) -> JByteArray<'local> {
    let work = |env: &mut Env<'local>| -> Result<_> {
        let session = sessions::get(handle)?;
        let (shared, store, start) = (&session.shared, &session.store, start.try_to_string(env)?);
        let fields = choose(env, &fields, store)?;
        shared.tell_order(store);
        let count = usize::try_from(count).unwrap_or_default();
        let answer = match shared.runtime.block_on(store.scan(&start, count, fields)) {
            Ok(rows) => wire::encode(Status::Ok, &rows, store),
            Err(error) => wire::encode(shared.failed(&error), &[], store),
        };
        Ok(env.byte_array_from_slice(&answer)?)
    };
    env.with_env(work).resolve::<ThrowRuntimeExAndDefault>()
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_peristyle_ycsb_PeristyleClient_update<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    key: JString<'local>,
    record: JByteArray<'local>,
) -> jint {
    let work = |env: &mut Env<'local>| -> Result<jint> {
        let session = sessions::get(handle)?;
        let (shared, store, key) = (&session.shared, &session.store, key.try_to_string(env)?);
        let record = wire::decode(env.convert_byte_array(&record)?)?;
        Ok(match shared.runtime.block_on(store.write(&key, record)) {
            Ok(()) => Status::Ok as jint,
            Err(error) => shared.failed(&error) as jint,
        })
    };
    env.with_env(work).resolve::<ThrowRuntimeExAndDefault>()
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_peristyle_ycsb_PeristyleClient_insert<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    key: JString<'local>,
    record: JByteArray<'local>,
) -> jint {
    let work = |env: &mut Env<'local>| -> Result<jint> {
        let session = sessions::get(handle)?;
        let (shared, store, key) = (&session.shared, &session.store, key.try_to_string(env)?);
        let record = wire::decode(env.convert_byte_array(&record)?)?;
        let mut batch = session.batch();
        let status = shared.runtime.block_on(batch.insert(store, &key, record));
        if let Some(example) = batch.example().filter(|_| !status.is_ok()) {
            shared.failed(example);
        }
        Ok(status as jint)
    };
    env.with_env(work).resolve::<ThrowRuntimeExAndDefault>()
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_peristyle_ycsb_PeristyleClient_delete<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    key: JString<'local>,
) -> jint {
    let work = |env: &mut Env<'local>| -> Result<jint> {
        let session = sessions::get(handle)?;
        let (shared, store, key) = (&session.shared, &session.store, key.try_to_string(env)?);
        Ok(match shared.runtime.block_on(store.delete(&key)) {
            Ok(()) => Status::Ok as jint,
            Err(error) => shared.failed(&error) as jint,
        })
    };
    env.with_env(work).resolve::<ThrowRuntimeExAndDefault>()
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_peristyle_ycsb_PeristyleClient_close<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
) {
    let work = |_: &mut Env<'local>| -> Result<()> { Ok(sessions::close(handle)?) };
    env.with_env(work).resolve::<ThrowRuntimeExAndDefault>();
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_peristyle_ycsb_PeristyleClient_shutDown<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
) {
    let work = |_: &mut Env<'local>| -> Result<()> { Ok(sessions::shut_down()?) };
    env.with_env(work).resolve::<ThrowRuntimeExAndDefault>();
}

/// The fields of a read, all of them where none is named.
fn choose(env: &Env<'_>, numbers: &JIntArray<'_>, store: &Store) -> Result<Fields> {
    let mut chosen = vec![0; numbers.len(env)?];
    if chosen.is_empty() {
        return Ok(Fields::default());
    }
    numbers.get_region(env, 0, &mut chosen)?;
    Ok(store.choose(chosen.into_iter().filter_map(|number| usize::try_from(number).ok())))
}
