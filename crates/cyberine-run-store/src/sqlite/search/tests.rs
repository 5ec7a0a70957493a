use rusqlite::StatementStatus;

use super::*;
use crate::schema;

/// A database with `count` runs, of which every hundredth is an error.
fn filled(count: u32) -> Connection {
    let mut conn = Connection::open_in_memory().unwrap();
    schema::migrate(&mut conn).unwrap();
    let tx = conn.transaction().unwrap();
    tx.execute_batch("INSERT INTO projects(path, dev, ino) VALUES ('/p', 1, 1)").unwrap();
    let numbers = "WITH RECURSIVE k(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM k WHERE n < ?1)";
    let run = "printf('%08x-0000-4000-8000-000000000000', n)";
    let runs = format!(
        "{numbers} INSERT INTO runs(id, project, workflow, task_preview, cwd, state, settled, detail,
             admitted_at, updated_at, epoch, last_seq)
         SELECT {run}, 1, 'w', 'task ' || n, '/p', iif(n % 100 = 0, 'error', 'done'), 1, '', n, n, 1, 1 FROM k"
    );
    tx.execute(&runs, [count]).unwrap();
    let search = format!(
        "{numbers} INSERT INTO search(rowid, prompt, workflow, cwd, id)
         SELECT n, 'task ' || iif(n = 500, 'needle', ''), 'w', '/p', '' FROM k"
    );
    tx.execute(&search, [count]).unwrap();
    tx.commit().unwrap();
    conn
}

/// How many steps of its virtual machine SQLite took.
fn steps(conn: &Connection, sql: &str, params: impl Params) -> i32 {
    let mut statement = conn.prepare(sql).unwrap();
    let found: Vec<i64> =
        statement.query_map(params, |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert!(!found.is_empty() && found.is_sorted_by(|a, b| a > b), "newest first: {found:?}");
    statement.get_status(StatementStatus::VmStep)
}

fn plan(conn: &Connection, sql: &str, params: impl Params) -> String {
    let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let rows = statement.query_map(params, |row| row.get::<_, String>(3)).unwrap();
    rows.map(Result::unwrap).collect::<Vec<_>>().join("; ")
}

#[test]
fn the_newest_20_cost_the_same_among_1000_and_100_000_runs() {
    let (small, large) = (filled(1_000), filled(100_000));
    assert_eq!(steps(&small, NEWEST, [20]), steps(&large, NEWEST, [20]));
    assert_eq!(steps(&small, RECENT, [20]), steps(&large, RECENT, [20]));
    assert_eq!(
        steps(&small, RECENT_AFTER, [20, 500, 500]),
        steps(&large, RECENT_AFTER, [20, 50_000, 50_000])
    );
    assert_eq!(steps(&small, BY_STATE, params!["error", 10]), steps(&large, BY_STATE, params!["error", 10]));
    for text in ["task", "needle"] {
        let text = phrase(text);
        assert_eq!(
            steps(&small, BY_TEXT, params![text, 20]),
            steps(&large, BY_TEXT, params![text, 20]),
            "{text}"
        );
    }
    let found = query(&large, "needle", 20).unwrap();
    assert_eq!(found.iter().map(|run| run.task_preview.as_str()).collect::<Vec<_>>(), ["task 500"]);
    let found = query(&large, "rro", 2).unwrap();
    assert_eq!(
        found.iter().map(|run| run.task_preview.as_str()).collect::<Vec<_>>(),
        ["task 100000", "task 99900"]
    );
}

#[test]
fn no_listing_scans_a_table_or_sorts() {
    let conn = filled(10);
    for plan in [
        plan(&conn, RECENT, [20]),
        plan(&conn, RECENT_AFTER, [20, 5, 5]),
        plan(&conn, BY_STATE, params!["error", 20]),
        plan(&conn, BY_TEXT, params!["\"task\"", 20]),
        plan(&conn, BY_WINNER, params!["\"task\"", 20]),
        plan(&conn, "SELECT id FROM runs WHERE settled = 0 ORDER BY n", []),
        plan(&conn, "SELECT total(held), total(spent) FROM reservations WHERE day = ?1", [1]),
    ] {
        assert!(plan.contains("INDEX"), "{plan}");
        assert!(!plan.contains("TEMP B-TREE"), "{plan}");
    }
    // The primary key itself, walked from its end; `LIMIT` stops it.
    assert_eq!(plan(&conn, NEWEST, [20]), "SCAN runs");
}

#[test]
fn a_phrase_has_no_special_characters() {
    assert_eq!(phrase("a\"b"), "\"a\"\"b\"");
    assert_eq!(phrase("a\0b"), "\"a\u{fffd}b\"");
}
