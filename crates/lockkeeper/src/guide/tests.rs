//! What the guide says besides Rust: its SQL does what its words say, and no page with programs is left out of the tests.

use std::path::PathBuf;

use rusqlite::types::Value;
use rusqlite::{Connection, ToSql};

fn guide() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide")
}

fn read(path: PathBuf) -> String {
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_page_with_programs_is_tested() {
    let tested = read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/guide.rs"));
    for page in std::fs::read_dir(guide()).expect("the guide") {
        let path = page.expect("a page").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let listed = tested.contains(&format!("\"docs/guide/{name}\""));
        assert_eq!(read(path).contains("```rust"), listed, "{name}");
    }
}

/// The statements of the page on fences, in order and without comments.
fn statements() -> Vec<String> {
    let page = read(guide().join("fences.md"));
    let blocks = page.split("```sql\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default());
    let code: String = blocks.flat_map(str::lines).map(|line| format!("{}\n", without_comment(line))).collect();
    code.split(';').map(|one| one.trim().to_owned()).filter(|one| !one.is_empty()).collect()
}

fn without_comment(line: &str) -> &str {
    line.split("--").next().unwrap_or_default()
}

/// How many rows a statement changes; it gets those of the two parameters that it names.
fn changed(database: &Connection, statement: &str, token: i64, pieces: i64) -> usize {
    let token = Value::from(token);
    let pieces = Value::from(pieces);
    let all: [(&str, &dyn ToSql); 2] = [(":token", &token), (":pieces", &pieces)];
    let named: Vec<_> = all.into_iter().filter(|(name, _)| statement.contains(name)).collect();
    database.execute(statement, &named[..]).unwrap_or_else(|error| panic!("{statement}: {error}"))
}

#[test]
fn the_fences_in_sql_keep_stale_holders_out() {
    let database = Connection::open_in_memory().expect("a database");
    let table = "CREATE TABLE stock (id INTEGER PRIMARY KEY, pieces BIGINT, read_mark BIGINT, write_mark BIGINT);
                 INSERT INTO stock VALUES (42, 100, 0, 0);";
    database.execute_batch(table).expect("a table");
    let statements = statements();
    let [column, _begin, enter, select, _commit, write, reader, writer, writes] = &statements[..] else {
        panic!("the page has other statements now: {statements:#?}");
    };
    database.execute_batch(column).expect("a column");
    let on = |statement: &str, token: i64| changed(&database, statement, token, 99);

    // A mutex: 7 reads and is paused, 9 enters and reads, 7 writes.
    assert_eq!((on(enter, 7), on(enter, 9)), (1, 1));
    assert_eq!(on(write, 7), 0, "a later holder has read");
    assert_eq!((on(enter, 7), on(enter, 9), on(write, 9)), (0, 1, 1));
    let pieces: i64 = database.query_row(select, [], |row| row.get(0)).expect("a row");
    assert_eq!(pieces, 99);

    // A read-write lock: readers share in any order, a writer needs the greatest token of all.
    assert_eq!((on(reader, 3), on(reader, 2), on(writer, 2)), (1, 1, 0));
    assert_eq!((on(writer, 5), on(writes, 5), on(reader, 3)), (1, 1, 0));
    assert_eq!((on(reader, 6), on(writes, 5), on(writer, 5)), (1, 0, 0));
}
