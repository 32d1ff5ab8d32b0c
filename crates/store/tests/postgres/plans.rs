//! Nothing on the hot path reads what it does not need, with a million tasks waiting.
//!
//! Every statement is explained with real values, in a transaction that is rolled back and has the settings that the
//! store gives it. One that is not is cold, and says why.

use crate::conformance::Backend;
use crate::database::Admin;
use crate::place::Place;
use serde_json::Value;

const MILLION: u32 = 1_000_000;
/// Tables of up to this many rows may be read from end to end.
const SMALL: u64 = 1_000;
/// Blocks that may be touched for each row that is given: the row's own, and a few of each index.
const MOST_BLOCKS: u64 = 32;

/// A third was submitted under a key, also of what has ended, of which a seventh failed, and of some a step was reused by
/// a run that has ended too. Leases are the ones that will be renewed. Nothing has to survive this, so it need not be logged.
const FILL: &str = r"
    alter table tidegate.open_task set unlogged;
    alter table tidegate.ended_task set unlogged;
    alter table tidegate.open_item set unlogged;
    alter table tidegate.ended_item set unlogged;
    alter table tidegate.limit_setting set unlogged;
    alter table tidegate.pace set unlogged;
    insert into tidegate.open_task (
        node, kind, name, id, idempotency, content, state, priority, root, accepted, attempts, failures, losses,
        incarnation, grant_number, paused, entered, body, payload
    )
    select
        node, 'job', 'action.' || node % 3, lpad(to_hex(node), 32, '0')::uuid, case node % 3 when 2 then 'k' || node end,
        node, 'waiting', 0, node, 'epoch', 0, 0, 0, 1, 1, false, false, decode(repeat('ab', 30 + node % 3 * 20), 'hex'),
        '{}'
    from generate_series(1, 1000000) as node;
    insert into tidegate.ended_task (
        node, kind, name, id, idempotency, state, priority, root, accepted, started, ended, attempts, failures, losses,
        paused, entered, body, payload, output
    )
    select
        node, 'job', 'action', lpad(to_hex(node), 32, '0')::uuid, case node % 3 when 2 then 'k' || node end,
        case node % 7 when 0 then 'failed' else 'succeeded' end, 0, node, 'epoch', 'epoch',
        timestamptz 'epoch' + node * interval '1 second', 1, 0, 0, false, false, '\x01', '{}', 'null'
    from generate_series(2000001, 2100000) as node;
    insert into tidegate.ended_task (
        node, parent, kind, state, priority, root, accepted, ended, attempts, failures, losses, paused, entered, body, reuses
    )
    select
        2500000 + n, 2499999, 'step', 'succeeded', 0, 2499999, 'epoch', 'epoch', 0, 0, 0, false, false, '\x01', 2000000 + n
    from generate_series(1, 10000) as n;
    insert into tidegate.open_item (
        step, idx, state, accepted, attempts, failures, losses, incarnation, grant_number, payload
    )
    select 7, idx, 'waiting', 'epoch', 0, 0, 0, 1, 1, '{}' from generate_series(0, 99999) as idx;
    insert into tidegate.ended_item (step, idx, state, accepted, ended, attempts, failures, losses, payload)
    select 8, idx, 'succeeded', 'epoch', 'epoch', 1, 0, 0, '{}' from generate_series(0, 99999) as idx;
    insert into tidegate.journal (sequence, term, batch, writes, entry)
    select sequence, 1, gen_random_uuid(), 100, '\x01' from generate_series(1, 2000) as sequence;
    insert into tidegate.mailbox (id, content) select gen_random_uuid(), '{}' from generate_series(1, 20000);
    update tidegate.position set sequence = 1990;
    update tidegate.leader set term = 1, server = 'server', lease_until = 'infinity';
    insert into tidegate.declared (kind, name, version, definition)
    select 'action', 'action.' || n, 0, '{}' from generate_series(1, 2000) as n;
    insert into tidegate.worker (name, incarnation, skills, process_slots, io_slots)
    select 'worker ' || n, 1, '{}', 8, 8 from generate_series(1, 2000) as n;
    analyze";

/// What limits leave in the tables: a word of an operator for a value of its own, and what is left of rates and quotas.
/// Tasks themselves say nothing of it, so the million is the same.
const LIMITS: [(&str, &str); 3] = [
    ("none is limited", ""),
    (
        "one kind is limited",
        "insert into tidegate.pace select 'rate ' || n, 'rate', '{}' from generate_series(1, 50000) as n; \
                             analyze tidegate.pace",
    ),
    (
        "every kind is limited",
        "insert into tidegate.pace select kind || ' ' || n, kind, '{}' \
         from generate_series(1, 50000) as n, unnest(array['quota', 'rate of a key']) as kind; \
         insert into tidegate.limit_setting select kind || ' ' || n, kind, '{}', false from generate_series(1, 5000) as n, \
         unnest(array['runs', 'tag', 'flow', 'action', 'action of a key', 'total', 'pool', 'rate', 'quota']) as kind; \
         analyze tidegate.pace, tidegate.limit_setting",
    ),
];

/// A statement, and what stands for its parameters.
struct Statement {
    name: &'static str,
    sql: &'static str,
    values: &'static [&'static str],
    /// Whether it runs with the settings of a projection.
    is_projected: bool,
    /// How many rows it is about, where its arrays do not say so.
    about: u64,
}

impl Statement {
    fn rows(&self) -> u64 {
        let is_long = |rows: &u64| self.values.iter().any(|value| value.contains(&format!("(1, {rows})")));
        [10_000, 1_000].into_iter().find(is_long).unwrap_or(self.about)
    }
}

macro_rules! statement {
    ($name:literal, $is_projected:literal, [$($value:expr),*] $(, about $rows:literal)?) => {
        Statement {
            name: $name,
            sql: include_str!(concat!("../../sql/postgres/", $name, ".sql")),
            values: &[$($value),*],
            is_projected: $is_projected,
            about: 1 $(* $rows)?,
        }
    };
}

/// Ten thousand tasks of the middle, or as many nulls.
const NODES: &str = "(select array_agg(500000 + n) from generate_series(1, 10000) as n)";
const NEW: &str = "(select array_agg(3000000 + n) from generate_series(1, 10000) as n)";
const NULLS: &str = "(select array_agg(null::text) from generate_series(1, 10000) as n)";
const ONES: &str = "(select array_agg(1) from generate_series(1, 10000) as n)";
const TIMES: &str = "(select array_agg(timestamptz 'epoch') from generate_series(1, 10000) as n)";
const YES: &str = "(select array_agg(true) from generate_series(1, 10000) as n)";
const NO: &str = "(select array_agg(false) from generate_series(1, 10000) as n)";
const WORDS: &str = "(select array_agg('running'::text) from generate_series(1, 10000) as n)";
const BYTES: &str = r"(select array_agg('\x01'::bytea) from generate_series(1, 10000) as n)";
const STEPS: &str = "(select array_agg(7) from generate_series(1, 10000) as n)";
const INDEXES: &str = "(select array_agg(50000 + n) from generate_series(1, 10000) as n)";
const LATER: &str = "(select array_agg(200000 + n) from generate_series(1, 10000) as n)";
const RATES: &str = "(select array_agg('rate ' || 20000 + n) from generate_series(1, 10000) as n)";
const JSONS: &str = "(select array_agg('{}'::text) from generate_series(1, 10000) as n)";
const IDS: &str =
    "(select array_agg(lpad(to_hex(n * 2001), 32, '0')::uuid) from generate_series(1, 1000) as n)";
const KEYS: &str = "(select array_agg('k' || n * 3) from generate_series(1, 1000) as n)";

/// Of those with a key that ended in time, a few may go.
const KEYS_STAY: &str = "(extract(epoch from now() - interval '2000100 s') * 1000000)::bigint";

#[rustfmt::skip] // A statement is read like a call.
const HOT: &[Statement] = &[
    statement!("commit", false, ["2001", "1", "gen_random_uuid()", "1", r"'\x01'::bytea", "array[1, 2, 3]::bigint[]"]),
    statement!("commit_look", false, ["2000", "1"]),
    statement!("lead", false, ["'server'", "1", "1000000"]),
    statement!("letter_sizes", false, ["0", "1000"]),
    statement!("letter_read", false, ["array(select n::bigint from generate_series(1, 1000) as n)"]),
    statement!("find", false, [IDS, KEYS]),
    statement!("task_payload_get", false, ["500000"]),
    statement!("item_payload_get", false, ["7", "500"]),
    statement!("task_ended_get", false, ["2000500"]),
    statement!("item_ended_get", false, ["8", "100", "200"]),
    statement!("task_attempts_get", false, ["500000"]),
    statement!("item_attempts_get", false, ["7", "100", "200"]),
    statement!("journal_list", false, ["1900", "50", "67108864"]),
    statement!("journal_tail", true, ["1990", "20000", "67108864"]),
    statement!("journal_trim", true, ["0", "990"], about 990),
    statement!("position_look", false, []),
    statement!("position_set", true, ["2000", "1", "'epoch'::timestamptz", "null::bigint"]),
    statement!("open_task_add", true, [NEW, NULLS, WORDS, NULLS, NULLS, NULLS, NULLS, NULLS, NULLS, WORDS, ONES, ONES, TIMES, NULLS, NULLS, ONES, ONES, ONES, NULLS, NULLS, NULLS, NULLS, NULLS, NULLS, NULLS, NO, NO, NULLS, BYTES, NULLS]),
    statement!("ended_task_add", true, [NEW, NULLS, WORDS, NULLS, NULLS, NULLS, NULLS, NULLS, NULLS, WORDS, ONES, ONES, TIMES, TIMES, TIMES, ONES, ONES, ONES, NULLS, NO, NO, NULLS, BYTES, NULLS, NULLS, NULLS]),
    statement!("open_task_change", true, [NODES, WORDS, ONES, NULLS, NULLS, TIMES, YES, NULLS, YES, NULLS, NO, NULLS, YES, WORDS, ONES, ONES, TIMES, TIMES, ONES, NULLS, NULLS, NULLS, NULLS]),
    statement!("open_task_end", true, [NODES, WORDS, ONES, NULLS, NULLS, TIMES, YES, NULLS, NULLS, NULLS, NULLS, NULLS, NULLS, TIMES, BYTES]),
    statement!("open_task_renew", true, [NODES, ONES, ONES, TIMES]),
    statement!("open_item_change", true, [STEPS, INDEXES, WORDS, ONES, NULLS, NULLS, TIMES, YES, NULLS, YES, NULLS, NO, NULLS, YES, WORDS, ONES, ONES, TIMES, TIMES, ONES]),
    statement!("open_item_end", true, [STEPS, INDEXES, WORDS, ONES, NULLS, NULLS, TIMES, YES, NULLS, NULLS, TIMES, BYTES]),
    statement!("open_item_end_range", true, ["7", "0", "10000", "'cancelled'::text", "'epoch'::timestamptz"], about 10_000),
    statement!("prune_roots", true, ["true", "'epoch'::timestamptz + interval '2005000 s'", KEYS_STAY, "1000", "array[]::bigint[]"], about 1_000),
    statement!("browse_outline", false, ["2100001"]),
    statement!("open_item_add", true, [STEPS, LATER, NULLS, WORDS, TIMES, NULLS, NULLS, ONES, ONES, ONES, NULLS, NULLS, NULLS, NULLS, NULLS, NULLS, NULLS, NULLS, BYTES]),
    statement!("ended_item_add", true, [STEPS, INDEXES, NULLS, WORDS, TIMES, TIMES, TIMES, ONES, ONES, ONES, NULLS, NULLS, BYTES, BYTES]),
    statement!("open_item_renew", true, [STEPS, INDEXES, ONES, ONES, TIMES]),
    statement!("find_part", false, ["500000"]),
    statement!("journal_last", false, []),
    statement!("position_get", false, []),
    statement!("position_take", true, []),
    statement!("leader_get", false, []),
    statement!("announce", false, ["'server'", "'10.0.0.7:99'", "'token'"]),
    statement!("resign", false, ["1"]),
    statement!("letter_set_aside", false, ["500", "'unreadable'"]),
    statement!("pace_set", true, [RATES, WORDS, JSONS]),
    statement!("limit_set", true, ["'pool 500'", "'pool'", "'{}'", "true"]),
    statement!("limit_clear", true, ["'pool 500'"]),
    statement!("worker_set", true, ["'worker 500'", "2", "'{}'", "4", "4"]),
    statement!("worker_remove", true, ["'worker 500'"]),
    statement!("declare_clear", true, ["'action'", "'action.500'", "0"]),
    statement!("declare_add", true, ["'action'", "'action.0'", "0", "'{}'"]),
    statement!("prune_below", true, ["(select array_agg(2000000 + n) from generate_series(1, 1000) as n)"]),
    statement!("prune_ended_items", true, ["array[8]::bigint[]", "1000"], about 1_000),
    statement!("prune_open_items", true, ["array[7]::bigint[]", "1000"], about 1_000),
    statement!("prune_tasks", true, ["(select array_agg(2000000 + n) from generate_series(1, 1000) as n)"]),
];

const OPENING: &str = "once, when a store is opened";
const LOADING: &str = "once a leadership, and reads all that is open";
const LOOKING: &str = "when somebody looks at what was submitted";
const CHANGING: &str = "when somebody changes something";
const NO_TABLE: &str = "reads no table";

const COLD: &[(&str, &str)] = &[
    ("audit_add", CHANGING),
    ("audit_forget", CHANGING),
    ("audit_list", LOOKING),
    ("hint", NO_TABLE),
    ("idle_most", NO_TABLE),
    ("browse_items", LOOKING),
    ("browse_roots", LOOKING),
    ("browse_tree", LOOKING),
    ("load_declared", LOADING),
    ("load_ended_steps", LOADING),
    ("load_items", LOADING),
    ("load_limits", LOADING),
    ("load_loops", LOADING),
    ("load_open_tasks", LOADING),
    ("load_paces", LOADING),
    ("load_settings", NO_TABLE),
    ("load_workers", LOADING),
    ("lock_most", NO_TABLE),
    ("migration_add", OPENING),
    ("migration_list", OPENING),
    ("migration_lock", OPENING),
    ("migration_state", OPENING),
    ("migration_table", OPENING),
    ("position_lock", "takes a lock, and cannot be explained"),
    ("post", "adds one letter, through a function that cannot be looked into"),
    ("project_settings", NO_TABLE),
    ("prune_count", "when somebody asks how much is old, and counts it"),
    ("schema_make", OPENING),
    ("token_list", LOOKING),
    ("token_remove", CHANGING),
    ("token_set", CHANGING),
];

#[test]
fn every_statement_is_explained_or_says_why_it_is_not() {
    let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/sql/postgres")).unwrap();
    let mut files: Vec<String> = folder
        .filter_map(|file| Some(file.unwrap().file_name().to_str()?.strip_suffix(".sql")?.to_owned()))
        .collect();
    let (hot, cold) = (HOT.iter().map(|hot| hot.name), COLD.iter().map(|(name, _)| *name));
    let mut known: Vec<&str> = hot.chain(cold).collect();
    files.sort();
    known.sort();
    assert_eq!(files, known);
}

#[test]
fn a_million_waiting_tasks_cost_nothing_on_the_hot_path() {
    let place = Place::fresh();
    place.0.hurry();
    drop(place.open());
    let admin = place.admin();
    admin.run(FILL);
    assert_eq!(admin.value("select count(*) from tidegate.open_task"), MILLION.to_string());
    let mut findings = Vec::new();
    for (limited, fill) in LIMITS {
        admin.run(fill);
        for statement in HOT {
            let plan = explain(&admin, statement);
            let name = format!("{} (where {limited})", statement.name);
            look_at(&admin, &name, &plan[0]["Plan"], &mut findings);
            let touched = blocks(&plan[0]["Plan"]);
            if touched > MOST_BLOCKS * statement.rows() {
                findings.push(format!("{name} touches {touched} blocks"));
            }
        }
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

fn explain(admin: &Admin, statement: &Statement) -> Value {
    let mut sql = statement.sql.to_owned();
    // The last first, so that $1 is not taken for the beginning of $10.
    for (index, value) in statement.values.iter().enumerate().rev() {
        sql = sql.replace(&format!("${}", index + 1), &format!("({value})"));
    }
    assert!(!sql.contains('$'), "{} has more parameters", statement.name);
    admin.run("begin");
    if statement.is_projected {
        admin.run(include_str!("../../sql/postgres/project_settings.sql"));
    }
    let lines = admin.rows(&format!("explain (analyze, buffers, format json)\n{sql}"));
    admin.run("rollback");
    let text: String = lines.into_iter().filter_map(|mut row| row.swap_remove(0)).collect();
    serde_json::from_str(&text).unwrap()
}

fn blocks(plan: &Value) -> u64 {
    let count = |key: &str| plan[key].as_u64().unwrap_or(0);
    count("Shared Hit Blocks") + count("Shared Read Blocks")
}

/// Looks at a part of a plan and all below it.
fn look_at(admin: &Admin, name: &str, part: &Value, findings: &mut Vec<String>) {
    let kind = part["Node Type"].as_str().unwrap_or_default();
    if kind == "Seq Scan" {
        let table = part["Relation Name"].as_str().unwrap_or_default();
        let rows = admin.value(&format!("select reltuples::bigint from pg_class where relname = '{table}'"));
        if rows.parse::<u64>().unwrap_or(0) > SMALL {
            findings.push(format!("{name} reads all of {table}"));
        }
    }
    // What was found a moment ago, and is in memory, may be looked through.
    let removed =
        part.as_object().into_iter().flatten().filter(|(key, _)| key.starts_with("Rows Removed by"));
    for (how, rows) in removed.filter(|(_, rows)| **rows != 0 && kind != "CTE Scan") {
        findings.push(format!("{name}: {rows} {how} ({kind})"));
    }
    for below in part["Plans"].as_array().into_iter().flatten() {
        look_at(admin, name, below, findings);
    }
}
