//! Lists that mostly have one item.

use std::mem;
use std::ops::Deref;

/// A list that has its only item in place, and several on the heap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Few<T> {
    One(T),
    Many(Vec<T>),
}

impl<T> Few<T> {
    pub(crate) fn push(&mut self, item: T) {
        *self = match mem::take(self) {
            Self::Many(items) if items.is_empty() => Self::One(item),
            Self::Many(mut items) => {
                items.push(item);
                Self::Many(items)
            }
            Self::One(first) => Self::Many(vec![first, item]),
        };
    }
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl<T> Deref for Few<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::One(item) => std::slice::from_ref(item),
            Self::Many(items) => items,
        }
    }
}
