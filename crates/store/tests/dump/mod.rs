//! Everything that the tables of a store hold, in one form for all of them: under the name of a row, its columns as text.
//!
//! Databases are read past the store's own code, so that what only people read is compared too. Times are microseconds,
//! bytes are hexadecimal, and what each database encodes in its own way is decoded.

use crate::database::Admin;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;
use tidegate_core::ids::RunId;
use tidegate_core::protocol::{Body, DeclaredRow, Life, Payload, Stop};
use tidegate_core::time::Moment;
use tidegate_store::codec;
use tidegate_store::memory::{Item, Tables, Task};

pub type Columns = Vec<Option<String>>;
pub type Dump = BTreeMap<String, Columns>;

/// Where a task has the columns that differ from one database to the other.
const ID: usize = 4;
const BODY: usize = 27;

/// Says first where they differ, because all of a dump is hard to read.
pub fn compare(found: &Dump, expected: &Dump) {
    for (name, columns) in expected {
        assert_eq!(found.get(name), Some(columns), "{name}");
    }
    let unheard_of: Vec<_> = found.keys().filter(|name| !expected.contains_key(*name)).collect();
    assert!(unheard_of.is_empty(), "{unheard_of:?}");
}

const SQLITE: [&str; 9] = [
    "select 'task ' || node, parent, kind, name, step_index, run_id, idempotency, content, state, priority, root, \
     accepted, due, started, ended, attempts, failures, losses, worker, incarnation, grant_number, granted, \
     lease_until, lease_length, stop, paused, entered, error, body, \
     case when payload is not null then lower(hex(payload)) end, case when output is not null then lower(hex(output)) end, \
     reuses from task join task_spec using (node) left join task_output using (node)",
    "select 'item ' || step || ' ' || idx, key, state, accepted, due, started, ended, attempts, failures, losses, \
     worker, incarnation, grant_number, granted, lease_until, lease_length, stop, error, \
     case when payload is not null then lower(hex(payload)) end, case when output is not null then lower(hex(output)) end \
     from item left join item_order using (step, idx) left join item_output using (step, idx)",
    "select 'limit ' || key, name, override, paused from limit_setting",
    "select 'pace ' || key, name, pace from pace",
    "select 'declared ' || row_number() over (order by position), kind, name, version, definition from declared",
    "select 'worker ' || name, incarnation, skills, process_slots, io_slots from worker",
    "select 'token ' || id, name, hash, scopes, made_by, made_at, until from token",
    "select 'audit ' || number, at, who, what, about, more from audit",
    "select 'head', sequence, next, now, digest from head",
];

pub fn of_sqlite(path: &Path) -> Dump {
    let file = Connection::open(path).unwrap();
    let mut dump = Dump::new();
    for sql in SQLITE {
        let mut statement = file.prepare(sql).unwrap();
        let count = statement.column_count();
        let read = |row: &Row| (0..count).map(|column| Ok(as_text(row.get_ref(column)?))).collect();
        for row in statement.query_map([], read).unwrap() {
            add(&mut dump, row.unwrap(), str::to_owned, |body| serde_json::from_str(body).unwrap());
        }
    }
    dump
}

fn as_text(value: ValueRef) -> Option<String> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Text(text) => Some(String::from_utf8(text.to_vec()).unwrap()),
        ValueRef::Real(_) | ValueRef::Blob(_) => panic!("no column is {value:?}"),
    }
}

const POSTGRES: [&str; 11] = [
    "select 'task ' || node, parent, kind, name, step_index, id, idempotency, content, state, priority, root, \
     {accepted}, {due}, {started}, null, attempts, failures, losses, worker, incarnation, grant_number, {granted}, \
     {lease_until}, lease_length, stop, paused::int, entered::int, error, encode(body, 'hex'), encode(payload, 'hex'), null, \
     null from tidegate.open_task",
    "select 'task ' || node, parent, kind, name, step_index, id, idempotency, content, state, priority, root, \
     {accepted}, null, {started}, {ended}, attempts, failures, losses, null, null, null, null, \
     null, null, stop, paused::int, entered::int, error, encode(body, 'hex'), encode(payload, 'hex'), \
     encode(output, 'hex'), reuses from tidegate.ended_task",
    "select 'item ' || step || ' ' || idx, key, state, {accepted}, {due}, {started}, null, attempts, failures, losses, \
     worker, incarnation, grant_number, {granted}, {lease_until}, lease_length, stop, error, encode(payload, 'hex'), null \
     from tidegate.open_item",
    "select 'item ' || step || ' ' || idx, key, state, {accepted}, null, {started}, {ended}, attempts, failures, losses, \
     null, null, null, null, null, null, stop, error, encode(payload, 'hex'), encode(output, 'hex') \
     from tidegate.ended_item",
    "select 'limit ' || key, name, override, paused::int from tidegate.limit_setting",
    "select 'pace ' || key, name, pace from tidegate.pace",
    "select 'declared ' || row_number() over (order by place), kind, name, version, definition from tidegate.declared",
    "select 'worker ' || name, incarnation, skills, process_slots, io_slots from tidegate.worker",
    "select 'token ' || id, name, hash, scopes, made_by, {made_at}, {until} from tidegate.token",
    "select 'audit ' || number, {at}, who, what, about, more from tidegate.audit",
    "select 'head', sequence, next, {now}, digest from tidegate.position",
];

/// The tables follow the journal: whoever wants all of it loads the store first.
pub fn of_postgres(admin: &Admin) -> Dump {
    let mut dump = Dump::new();
    for sql in POSTGRES {
        // A time in braces is wanted in microseconds.
        let sql = sql.replace('{', "(extract(epoch from ").replace('}', ") * 1000000)::bigint");
        for row in admin.rows(&sql) {
            let id = |id: &str| RunId(u128::from_str_radix(&id.replace('-', ""), 16).unwrap()).to_string();
            add(&mut dump, row, id, |body| codec::decode_part(&bytes(body)).unwrap());
        }
    }
    dump
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// The first column is the name.
fn add(dump: &mut Dump, mut row: Columns, id: impl Fn(&str) -> String, body: impl Fn(&str) -> Body) {
    let name = row.remove(0).unwrap();
    if name.starts_with("task ") {
        row[ID] = row[ID].as_deref().map(id);
        row[BODY] = row[BODY].as_deref().map(|text| format!("{:?}", body(text)));
    }
    assert_eq!(dump.insert(name.clone(), row), None, "{name} is there twice");
}

/// Of the reference.
pub fn of_memory(tables: &Tables) -> Dump {
    let Tables { head, tasks, items, limits, paces, declared, workers, tokens, audit } = tables;
    let mut dump = Dump::new();
    dump.extend(tasks.values().map(|task| (format!("task {}", task.row.node.0), of_task(task))));
    dump.extend(items.iter().map(|((step, idx), item)| (format!("item {} {idx}", step.0), of_item(item))));
    for (key, row) in limits {
        let set = row.set.as_ref().map(|set| serde_json::to_string(set).unwrap());
        let columns = vec![some(key), set, some(u8::from(row.paused))];
        dump.insert(format!("limit {}", serde_json::to_string(key).unwrap()), columns);
    }
    for (key, pace) in paces {
        let columns = vec![some(key), Some(serde_json::to_string(pace).unwrap())];
        dump.insert(format!("pace {}", serde_json::to_string(key).unwrap()), columns);
    }
    for (place, row) in (1..).zip(declared) {
        dump.insert(format!("declared {place}"), of_declared(row));
    }
    for (name, row) in workers {
        let skills = Some(serde_json::to_string(&row.skills).unwrap());
        let columns = vec![some(row.incarnation), skills, some(row.slots.process), some(row.slots.io)];
        dump.insert(format!("worker {name}"), columns);
    }
    for (id, row) in tokens {
        let scopes = Some(serde_json::to_string(&row.scopes).unwrap());
        let until = row.until.and_then(|until| some(until.0));
        let columns = vec![some(&row.name), some(&row.hash), scopes, some(&row.by), some(row.at.0), until];
        dump.insert(format!("token {id}"), columns);
    }
    for (number, row) in audit {
        let columns =
            vec![some(row.at.0), some(&row.by), some(&row.what), some(&row.about), row.more.clone()];
        dump.insert(format!("audit {number}"), columns);
    }
    let digest = head.digest.map(|digest| digest.cast_signed().to_string());
    dump.insert("head".to_owned(), vec![some(head.sequence), some(head.next), some(head.now.0), digest]);
    dump
}

fn of_task(task: &Task) -> Columns {
    let row = &task.row;
    let (kind, name, index, id, idempotency) = match &row.body {
        Body::Job(job) => ("job", some(&job.action), None, some(job.id), job.idempotency.as_ref()),
        Body::Run(run) => ("run", some(&run.flow), None, run.id.and_then(some), run.idempotency.as_ref()),
        Body::Step(step) => ("step", None, some(step.index), None, None),
        Body::ItemRun(body) => ("run", some(&body.run.flow), some(body.index), None, None),
    };
    let mut columns = vec![row.parent.and_then(|parent| some(parent.0)), some(kind), name, index, id];
    columns.push(idempotency.and_then(|known| some(&known.key)));
    columns.push(idempotency.and_then(|known| some(known.content.cast_signed())));
    columns.extend([some(row.life.state.as_str()), some(row.priority), some(row.root), some(row.accepted.0)]);
    columns.extend(of_life(&row.life));
    columns.extend([some(u8::from(row.life.paused)), some(u8::from(row.life.entered))]);
    columns.extend([row.life.error.clone(), Some(format!("{:?}", row.body))]);
    columns.extend([row.payload.as_ref().map(hex), task.output.as_ref().map(hex)]);
    columns.push(row.body.reuses().and_then(|run| some(run.0)));
    columns
}

fn of_item(item: &Item) -> Columns {
    let Item { order, accepted, life, output } = item;
    let mut columns = vec![order.key.as_ref().and_then(some), some(life.state.as_str()), some(accepted.0)];
    columns.extend(of_life(life));
    columns.extend([life.error.clone(), Some(hex(&order.order)), output.as_ref().map(hex)]);
    columns
}

fn of_life(life: &Life) -> Columns {
    let time = |time: Option<Moment>| time.and_then(|time| some(time.0));
    let mut columns = vec![time(life.due), time(life.started), time(life.ended)];
    columns.extend([some(life.tally.started), some(life.tally.failures), some(life.tally.losses)]);
    columns.extend(match &life.grant {
        Some(grant) => [
            some(&grant.worker),
            some(grant.epoch.incarnation),
            some(grant.epoch.grant),
            some(grant.at.0),
            some(grant.until.0),
            some(grant.length.0),
        ],
        None => Default::default(),
    });
    columns.push(life.stop.map(|stop| {
        let word = match stop {
            Stop::Cancelled => "cancelled",
            Stop::TimedOut => "timed_out",
            Stop::FailedFast => "failed_fast",
            Stop::LoopFailed => "loop_failed",
            Stop::Superseded => "superseded",
        };
        word.to_owned()
    }));
    columns
}

fn of_declared(row: &DeclaredRow) -> Columns {
    let (kind, name, version) = match row {
        DeclaredRow::Flow { version, flow } => ("flow", flow.name.as_str(), *version),
        DeclaredRow::Action(row) => ("action", row.action.policy.action.as_str(), row.version),
        DeclaredRow::Limits(_) => ("limits", "", 0),
    };
    vec![some(kind), some(name), some(version), Some(serde_json::to_string(row).unwrap())]
}

fn some(value: impl Display) -> Option<String> {
    Some(value.to_string())
}

fn hex(payload: &Payload) -> String {
    payload.bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}
