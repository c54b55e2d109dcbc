//! Simulated servers whose truth is known: `sim://`, in virtual time.

mod grid;
mod server;
mod target;
mod uri;
mod window;

pub(crate) use self::grid::Grid;
pub(crate) use self::server::{CORES, Curve, Server};
pub(crate) use self::target::SimTarget;
pub(crate) use self::window::Order;
