//! The schema: made once, whoever comes first, and legible.

use crate::conformance::Backend;
use crate::conformance::samples::granted;
use crate::database::Admin;
use crate::golden;
use crate::place::{Place, ledger, other_job};
use std::time::Duration;
use tidegate_core::ids::{NodeId, TaskId};
use tidegate_store::{PostgresStore, Reads, Store};

#[test]
fn servers_that_start_together_do_not_collide() {
    let place = Place::fresh();
    let url = place.0.url.as_str();
    std::thread::scope(|scope| {
        let servers: Vec<_> =
            (0..8).map(|_| scope.spawn(move || PostgresStore::open(url).map(drop))).collect();
        for server in servers {
            assert_eq!(server.join().unwrap(), Ok(()));
        }
    });
    assert_eq!(place.admin().value("select count(*) from tidegate.migration"), "7");
}

#[test]
fn rows_can_be_read_without_us() {
    let mut ledger = ledger();
    ledger.write([other_job(1), granted(TaskId::node(NodeId(1)), 1)]);
    assert!(ledger.store.reach(1, Duration::ZERO).unwrap());
    ledger.load();
    let row = "select kind, name, state, worker, payload::json ->> 'to', tags ->> 'team' from tidegate.task";
    let words = ["job", "mail.send", "running", "w1", "a", "ü"].map(|word| Some(word.to_owned()));
    assert_eq!(ledger.place.admin().rows(row), [words]);
}

#[test]
fn a_database_of_an_earlier_version_is_brought_forward_and_keeps_what_is_in_it() {
    let place = Place::fresh();
    let admin = place.admin();
    drop(place.open());
    let newest = admin.rows(DUMP);
    let made = admin.rows("select number, name, checksum from tidegate.migration order by number");
    for earlier in 1..made.len() {
        admin.run("drop schema tidegate cascade");
        admin.run(include_str!("../../sql/postgres/schema_make.sql"));
        admin.run(include_str!("../../sql/postgres/migration_table.sql"));
        for step in &made[..earlier] {
            make(&admin, step);
        }
        let id = admin.value("select tidegate.submit('mail.send')");
        let mut store = place.open();
        assert_eq!(admin.rows(DUMP), newest, "from {earlier}");
        let letters = store.letters(0, 9).unwrap();
        assert_eq!(
            letters.iter().map(|letter| format!("{:032x}", letter.id.0)).collect::<Vec<_>>(),
            [id.replace('-', "")]
        );
    }
}

/// Makes a step: its number, its name and its checksum are given.
fn make(admin: &Admin, step: &[Option<String>]) {
    let [Some(number), Some(name), Some(sum)] = step else { panic!("{step:?}") };
    let file = format!("{}/sql/postgres/migrations/{number:0>4}_{name}.sql", env!("CARGO_MANIFEST_DIR"));
    admin.run(&std::fs::read_to_string(file).unwrap());
    admin.run(&format!("insert into tidegate.migration values ({number}, '{name}', '{sum}')"));
}

/// `docs/reference/tables.md`.
const REFERENCE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/tables.md"));

#[test]
fn every_column_that_people_read_is_explained() {
    let place = Place::fresh();
    drop(place.open());
    for view in ["task", "item"] {
        let heading = format!("### `tidegate.{view}`");
        let (_, section) = REFERENCE.split_once(&heading).unwrap();
        let (section, _) = section.split_once("\n### ").unwrap();
        let named = |line: &str| line.split('|').nth(1).map(str::to_owned).filter(|cell| cell.contains('`'));
        let cells: Vec<String> = section.lines().filter_map(named).collect();
        let mut explained: Vec<&str> =
            cells.iter().flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
        let columns = format!(
            "select attname from pg_attribute where attrelid = 'tidegate.{view}'::regclass and attnum > 0"
        );
        let columns = place.admin().rows(&columns);
        let mut columns: Vec<&str> = columns.iter().filter_map(|row| row[0].as_deref()).collect();
        explained.sort();
        columns.sort();
        assert_eq!(explained, columns);
    }
}

#[test]
fn every_question_of_the_reference_can_be_asked() {
    let place = Place::fresh();
    drop(place.open());
    let (_, questions) = REFERENCE.split_once("```sql\n").unwrap();
    let (questions, _) = questions.split_once("```").unwrap();
    let questions: Vec<&str> = questions.split("\n\n").collect();
    assert_eq!(questions.len(), 4);
    for question in questions {
        assert_eq!(place.admin().rows(question), Vec::<Vec<Option<String>>>::new());
    }
}

#[test]
fn the_privileges_of_the_reference_are_enough_and_no_more() {
    let mut ledger = ledger();
    ledger.write([other_job(1)]);
    ledger.load();
    let (_, grants) = REFERENCE.split_once("### Privileges").unwrap();
    let (_, grants) = grants.split_once("```sql\n").unwrap();
    let (grants, _) = grants.split_once("```").unwrap();
    let (admin, role) = (ledger.place.admin(), format!("app_{}", std::process::id()));
    admin.run(&format!("create role {role}; {}", grants.replace("to app;", &format!("to {role};"))));
    admin.run(&format!(
        "set role {role}; select tidegate.submit('mail.send', key => 'once', tags => '{{\"a\": \"b\"}}')"
    ));
    assert_eq!(admin.value("select payload from tidegate.task"), r#"{"to":"a"}"#);
    assert_eq!(admin.value("select count(*) from tidegate.item"), "0");
    for table in ["server", "mailbox", "open_task", "journal", "leader"] {
        admin.run(&format!(
            "do $$ begin perform from tidegate.{table}; raise 'it can be read'; \
             exception when insufficient_privilege then null; end $$"
        ));
    }
    admin.run(&format!("reset role; drop owned by {role}; drop role {role}"));
    assert_eq!(ledger.store.letters(0, 9).unwrap().len(), 1);
}

/// Tables, columns, indexes, views and functions, and what is said about them.
const DUMP: &str = r#"
    select line from (
        select 1 as part, relname::text as of, 0 as place, relkind::text || ' ' || relname || coalesce(': ' || obj_description(oid, 'pg_class'), '') as line
        from pg_class where relnamespace = 'tidegate'::regnamespace and relkind in ('r', 'v')
        union all
        select 1, (select relname::text from pg_class where oid = attrelid), attnum, '    ' || attname || ' ' || format_type(atttypid, atttypmod)
            || case when attnotnull then ' not null' else '' end
            || coalesce(' default ' || pg_get_expr(adbin, adrelid), '')
            || coalesce(': ' || col_description(attrelid, attnum), '')
        from pg_attribute left join pg_attrdef on adrelid = attrelid and adnum = attnum
        where attrelid in (select oid from pg_class where relnamespace = 'tidegate'::regnamespace and relkind in ('r', 'v'))
            and attnum > 0
        union all
        select 2, indexname::text, 0, indexdef from pg_indexes where schemaname = 'tidegate'
        union all
        select 3, proname::text, 0, pg_get_functiondef(oid) from pg_proc where pronamespace = 'tidegate'::regnamespace
    ) as dump
    order by part, of collate "C", place"#;

#[test]
fn the_schema_is_the_one_that_was_looked_at() {
    let place = Place::fresh();
    drop(place.open());
    let lines = place.admin().rows(DUMP).into_iter().filter_map(|mut row| row.swap_remove(0));
    golden::compare("postgres.txt", &lines.collect::<Vec<_>>());
}
