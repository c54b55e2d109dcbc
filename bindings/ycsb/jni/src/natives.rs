//! The native methods.

use std::collections::HashMap;
use std::fmt;

use jni::errors::ThrowRuntimeExAndDefault;
use jni::objects::{JByteArray, JClass, JObjectArray, JString};
use jni::sys::{jint, jlong};
use jni::{Env, EnvUnowned};

use crate::clerk::{Answer, Errand};
use crate::{faults, sessions};

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

/// What every native method stands in: failures and panics become exceptions.
fn framed<'local, T: Default>(mut env: EnvUnowned<'local>, work: impl FnOnce(&mut Env<'local>) -> Result<T>) -> T {
    env.with_env(work).resolve::<ThrowRuntimeExAndDefault>()
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_peristyle_ycsb_PeristyleClient_open<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    pairs: JObjectArray<'local, JString<'local>>,
) -> jlong {
    framed(env, |env| {
        let mut properties = HashMap::new();
        for place in (0..pairs.len(env)?).step_by(2) {
            let (name, value) = (pairs.get_element(env, place)?, pairs.get_element(env, place + 1)?);
            properties.insert(name.try_to_string(env)?, value.try_to_string(env)?);
        }
        Ok(sessions::open(&properties)?)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_peristyle_ycsb_PeristyleClient_fields<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
) -> JObjectArray<'local, JString<'local>> {
    framed(env, |env| {
        let session = sessions::get(handle)?;
        let fields = session.store.fields();
        let array = JObjectArray::<JString<'_>>::new(env, fields.len(), JString::null())?;
        for (place, field) in fields.iter().enumerate() {
            let field = env.new_string(field)?;
            array.set_element(env, place, field)?;
        }
        Ok(array)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_peristyle_ycsb_PeristyleClient_read<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    order: JByteArray<'local>,
) -> JByteArray<'local> {
    framed(env, |env| Ok(env.byte_array_from_slice(&ask(env, handle, &order)?.records)?))
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_peristyle_ycsb_PeristyleClient_write<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    order: JByteArray<'local>,
) -> jint {
    framed(env, |env| Ok(ask(env, handle, &order)?.status as jint))
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_peristyle_ycsb_PeristyleClient_close<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
) {
    framed(env, |_| Ok(sessions::close(handle)?));
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_peristyle_ycsb_PeristyleClient_shutDown<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
) {
    framed(env, |_| Ok(sessions::shut_down()?));
}

fn ask(env: &Env<'_>, handle: jlong, order: &JByteArray<'_>) -> Result<Answer> {
    let session = sessions::get(handle)?;
    let order = env.convert_byte_array(order)?;
    faults::panic_in_call(&order);
    Ok(session.ask(Errand::Call(order))?)
}
