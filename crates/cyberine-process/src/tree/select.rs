//! Which rows of the process table belong to a tree: a pure function of the table.

use std::collections::{HashMap, HashSet, VecDeque};

use super::{Process, Scope};

/// One row of the process table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) process: Process,
    pub(super) parent: u32,
    pub(super) group: u32,
    /// Ended and waiting to be reaped.
    pub(super) is_zombie: bool,
}

/// Picks the living processes of `scope` from `table`: its root and the root's group, what has
/// the mark (`carries` tells), what was `known` to belong to it before, and everything below
/// any of these. `me` and the ancestors of `me` are passed over.
pub(super) fn select(
    table: &[Row],
    me: u32,
    scope: &Scope,
    known: &HashSet<Process>,
    carries: impl Fn(u32) -> bool,
) -> Vec<Row> {
    let rows: HashMap<u32, &Row> = table.iter().map(|row| (row.process.pid, row)).collect();
    let spared = with_ancestors(&rows, me);
    let belongs = |row: &Row| {
        let root = scope.root;
        known.contains(&row.process) || root == Some(row.process.pid) || root == Some(row.group)
    };
    let mut chosen: HashSet<u32> = HashSet::new();
    let mut queue: VecDeque<u32> = VecDeque::new();
    for row in table.iter().filter(|row| !spared.contains(&row.process.pid)) {
        if belongs(row) || (scope.mark.is_some() && !row.is_zombie && carries(row.process.pid)) {
            chosen.insert(row.process.pid);
            queue.push_back(row.process.pid);
        }
    }
    if scope.everything_below {
        queue.push_back(me);
    }
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for row in table {
        children.entry(row.parent).or_default().push(row.process.pid);
    }
    while let Some(parent) = queue.pop_front() {
        for &child in children.get(&parent).into_iter().flatten() {
            if !spared.contains(&child) && chosen.insert(child) {
                queue.push_back(child);
            }
        }
    }
    table.iter().filter(|row| !row.is_zombie && chosen.contains(&row.process.pid)).copied().collect()
}

fn with_ancestors(rows: &HashMap<u32, &Row>, me: u32) -> HashSet<u32> {
    let mut spared = HashSet::from([me]);
    let mut at = me;
    // A table read while processes come and go can hold a circle; a pid seen twice ends the walk.
    while let Some(row) = rows.get(&at)
        && spared.insert(row.parent)
    {
        at = row.parent;
    }
    spared
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `(pid, parent, group)`; a process starts at the time of its pid.
    fn table(rows: &[(u32, u32, u32)]) -> Vec<Row> {
        let row = |&(pid, parent, group): &(u32, u32, u32)| Row {
            process: Process { pid, start: u64::from(pid) },
            parent,
            group,
            is_zombie: false,
        };
        rows.iter().map(row).collect()
    }

    fn pids(chosen: &[Row]) -> Vec<u32> {
        chosen.iter().map(|row| row.process.pid).collect()
    }

    /// init 1, host 10, me 20; my child 30 with 31 below, 32 in its group but adopted by init,
    /// 33 in a session of its own and adopted by me; 40 my other child.
    const ROWS: &[(u32, u32, u32)] = &[
        (1, 0, 1),
        (10, 1, 10),
        (20, 10, 10),
        (30, 20, 30),
        (31, 30, 31),
        (32, 1, 30),
        (33, 20, 33),
        (40, 20, 40),
    ];

    #[test]
    fn a_tree_is_root_group_and_what_is_below() {
        let scope = Scope::default().with_root(30);
        let chosen = select(&table(ROWS), 20, &scope, &HashSet::new(), |_| false);
        assert_eq!(pids(&chosen), [30, 31, 32]);
    }

    #[test]
    fn the_mark_finds_what_left_and_spares_the_sibling() {
        let scope = Scope::marked("M", "1").with_root(30);
        let chosen = select(&table(ROWS), 20, &scope, &HashSet::new(), |pid| pid == 33);
        assert_eq!(pids(&chosen), [30, 31, 32, 33]);
    }

    #[test]
    fn what_was_known_stays_meant_after_its_parent_died() {
        let known = HashSet::from([Process { pid: 33, start: 33 }]);
        let chosen = select(&table(ROWS), 20, &Scope::default(), &known, |_| false);
        assert_eq!(pids(&chosen), [33]);
        let reused = HashSet::from([Process { pid: 33, start: 1 }]);
        assert_eq!(pids(&select(&table(ROWS), 20, &Scope::default(), &reused, |_| false)), [0_u32; 0]);
    }

    #[test]
    fn neither_we_nor_our_ancestors_are_ever_meant() {
        let scope = Scope { everything_below: true, ..Scope::marked("M", "1") };
        let chosen = select(&table(ROWS), 20, &scope, &HashSet::new(), |pid| pid <= 20);
        assert_eq!(pids(&chosen), [30, 31, 33, 40]);
        // From inside the tree of 10, what lies beside us is meant, we are not, nor what is below us.
        let scope = Scope::default().with_root(30);
        let chosen = select(&table(ROWS), 31, &scope, &HashSet::new(), |_| false);
        assert_eq!(pids(&chosen), [32]);
    }

    #[test]
    fn zombies_are_dead_and_circles_end() {
        let mut rows = table(&[(5, 6, 5), (6, 5, 5), (7, 5, 7)]);
        rows[2].is_zombie = true;
        let scope = Scope { everything_below: true, ..Scope::default() };
        assert_eq!(pids(&select(&rows, 5, &scope, &HashSet::new(), |_| true)), [0_u32; 0]);
    }
}
