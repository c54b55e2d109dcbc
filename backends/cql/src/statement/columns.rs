//! A set of columns, cheap to build, hash and compare.

/// Columns by index. Up to 128 of a table take no allocation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum ColumnSet {
    /// Bit n is column n.
    Few(u128),
    /// Ascending indexes, at least one of them 128 or more.
    Many(Vec<usize>),
}

impl ColumnSet {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::Few(0)
    }

    /// The indexes, ascending.
    pub(crate) fn indexes(&self) -> Vec<usize> {
        match self {
            Self::Few(bits) => (0..128).filter(|index| bits & (1 << index) != 0).collect(),
            Self::Many(indexes) => indexes.clone(),
        }
    }
}

impl FromIterator<usize> for ColumnSet {
    fn from_iter<I: IntoIterator<Item = usize>>(indexes: I) -> Self {
        let mut bits = 0;
        let mut indexes = indexes.into_iter();
        for index in &mut indexes {
            if index >= 128 {
                let mut many: Vec<usize> = Self::Few(bits).indexes();
                many.push(index);
                many.extend(indexes);
                many.sort_unstable();
                many.dedup();
                return Self::Many(many);
            }
            bits |= 1 << index;
        }
        Self::Few(bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_gives_its_columns_in_order_however_many_the_table_has() {
        for given in [vec![], vec![3, 0, 127], vec![128], vec![5, 300, 2, 300, 1]] {
            let mut expected = given.clone();
            expected.sort_unstable();
            expected.dedup();
            assert_eq!(given.into_iter().collect::<ColumnSet>().indexes(), expected);
        }
    }

    #[test]
    fn the_order_of_building_does_not_matter() {
        let set = |indexes: &[usize]| indexes.iter().copied().collect::<ColumnSet>();
        assert_eq!(set(&[1, 200, 3]), set(&[200, 3, 1]));
        assert_ne!(set(&[1]), set(&[1, 200]));
    }
}
