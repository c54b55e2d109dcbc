//! The load generator: independent clients in a closed loop or at a pace, what they do, and what is recorded of it.

mod chooser;
mod owners;
mod pace;
mod recorder;
mod window;
mod worker;

pub(crate) use self::chooser::Fresh;
pub(crate) use self::owners::uneven;
pub(crate) use self::recorder::class_of;
pub(crate) use self::window::{Live, Load, measure};
