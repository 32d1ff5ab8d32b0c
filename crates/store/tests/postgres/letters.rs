//! Applications leave letters inside transactions of their own.

use crate::conformance::Backend;
use crate::conformance::ledger::lead;
use crate::place::{Place, ledger};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::mpsc;
use std::time::Duration;
use tidegate_core::ids::Name;
use tidegate_store::Store;

#[test]
fn a_letter_is_there_if_its_transaction_commits() {
    let mut ledger = ledger();
    let admin = ledger.place.admin();
    admin.run("begin; select tidegate.submit('mail.send'); rollback");
    assert_eq!(ledger.store.letters(0, 9).unwrap(), []);
    admin.run("begin");
    let id = admin.value(
        "select tidegate.submit('mail.send', '{\"to\": \"ann\"}', tags => '{\"team\": \"data\"}', priority => 3, \
         key => 'once', due => '2030-01-02 03:04:05+00')",
    );
    assert_eq!(ledger.store.letters(0, 9).unwrap(), []);
    admin.run("commit");
    let letters = ledger.store.letters(0, 9).unwrap();
    assert_eq!(format!("{:032x}", letters[0].id.0), id.replace('-', ""));
    assert_eq!((letters[0].id.0 >> 76) & 0xf, 7, "the version of a UUID that begins with the time");
    let content: serde_json::Value = serde_json::from_slice(&letters[0].content).unwrap();
    let expected = serde_json::json!({
        "name": "mail.send", "input": {"to": "ann"}, "tags": {"team": "data"}, "priority": 3, "key": "once",
        "due": "2030-01-02T03:04:05.000000Z",
    });
    assert_eq!(content, expected);
}

#[test]
fn what_is_not_said_has_its_usual_value() {
    let mut ledger = ledger();
    ledger.place.admin().run("select tidegate.submit('mail.send')");
    let content: serde_json::Value =
        serde_json::from_slice(&ledger.store.letters(0, 9).unwrap()[0].content).unwrap();
    let expected = serde_json::json!({"name": "mail.send", "input": {}, "tags": {}, "priority": 0, "key": null, "due": null});
    assert_eq!(content, expected);
}

#[test]
fn who_listens_hears_of_letters_and_leaders() {
    let place = Place::fresh();
    let mut store = place.open();
    let (heard, hears) = mpsc::channel();
    store.listen(Box::new(move || heard.send(()).unwrap_or_default()));
    let hear = |what: &str| hears.recv_timeout(Duration::from_secs(20)).expect(what);
    hear("that it listens");
    place.admin().run("select tidegate.submit('mail.send')");
    hear("of a letter");
    let term = lead(&mut store);
    hear("of a leader");
    store.resign(term).unwrap();
    hear("that nobody leads");
}

/// What may follow `tidegate.submit(`, of which none can ever be accepted.
fn wrong() -> Vec<String> {
    // As JSON writes them they have 257 bytes at least.
    let long = ["x".repeat(257), "ü".repeat(129), "\"".repeat(129), "\u{1}".repeat(43), "\u{7f}".repeat(43)];
    let too_long = long.iter().flat_map(|long| {
        let in_json = serde_json::to_string(long).unwrap();
        [
            format!("'{long}'"),
            format!("'mail.send', key => '{long}'"),
            format!("'mail.send', tags => '{{{in_json}: \"x\"}}'"),
            format!("'mail.send', tags => '{{\"x\": {in_json}}}'"),
        ]
    });
    let others = [
        "null",
        "''",
        "'mail.send', key => ''",
        "'mail.send', priority => 101",
        "'mail.send', priority => -101",
        "'mail.send', priority => null",
        "'mail.send', tags => null",
        "'mail.send', tags => 'null'",
        "'mail.send', tags => '[]'",
        "'mail.send', tags => '\"tenant\"'",
        "'mail.send', tags => '{\"tenant\": 7}'",
        "'mail.send', tags => '{\"tenant\": null}'",
        "'mail.send', tags => '{\"tenant\": [\"x\"]}'",
        "'mail.send', tags => '{\"tenant\": []}'",
        "'mail.send', tags => '{\"tenant\": {}}'",
        "'mail.send', tags => '{\"\": \"x\"}'",
        "'mail.send', due => 'infinity'",
        "'mail.send', due => '-infinity'",
        "'mail.send', due => '4000-01-01 BC'",
        "'mail.send', due => '20000-01-01'",
        "'mail.send', due => '0001-01-01 00:00+00'::timestamptz - interval '1 us'",
        "'mail.send', due => '9999-12-30 22:00+00'::timestamptz + interval '1 us'",
        "'mail.send', due => '9999-12-31 00:00+00'",
        "'mail.send', to_jsonb(repeat('x', 16 * 1024 * 1024 - 1))",
        // Short as it is kept, and long as it is read.
        "'mail.send', (select jsonb_agg(1e100000::numeric) from generate_series(1, 200))",
        "'mail.send', tags => (select jsonb_object_agg('tag ' || n, '') from generate_series(1, 100000) as n)",
    ];
    others.into_iter().map(str::to_owned).chain(too_long).collect()
}

#[test]
fn what_could_never_be_accepted_is_refused_where_it_is_submitted() {
    let ledger = ledger();
    let admin = ledger.place.admin();
    for zone in ["UTC", "Asia/Tokyo", "America/New_York"] {
        admin.run(&format!("set timezone = '{zone}'"));
        for arguments in wrong() {
            // Whatever else happens is an error, and so fails.
            admin.run(&format!(
                "do $$ begin perform tidegate.submit({arguments}); raise 'it was taken'; \
                 exception when invalid_parameter_value then null; end $$"
            ));
        }
    }
    assert_eq!(admin.value("select count(*) from tidegate.mailbox"), "0");
}

/// A letter as the engine reads it.
#[derive(Deserialize)]
struct Content {
    name: Name,
    tags: BTreeMap<Name, Name>,
    priority: i8,
    key: Option<Name>,
    due: Option<jiff::Timestamp>,
}

#[test]
fn what_is_taken_at_the_edges_can_be_read() {
    let mut ledger = ledger();
    let admin = ledger.place.admin();
    let mut last = 0;
    let mut read = |arguments: &str| -> Content {
        admin.run(&format!("select tidegate.submit({arguments})"));
        let letters = ledger.store.letters(last, 9).unwrap();
        assert_eq!(letters.len(), 1, "{arguments}");
        last = letters[0].number;
        serde_json::from_slice(&letters[0].content).unwrap_or_else(|error| panic!("{arguments}: {error}"))
    };
    for longest in ["x".repeat(256), "ü".repeat(128), "\"".repeat(128), "\\".repeat(128), "\n".repeat(42)] {
        let in_json = serde_json::to_string(&longest).unwrap();
        let found = read(&format!("'{longest}', key => '{longest}', tags => '{{{in_json}: {in_json}}}'"));
        let longest = Name::from(longest);
        assert_eq!((&found.name, found.key.as_ref()), (&longest, Some(&longest)));
        assert_eq!(found.tags, BTreeMap::from([(longest.clone(), longest)]));
    }
    assert_eq!(read("'a', tags => '{\"of\": \"\"}'").tags, BTreeMap::from([("of".into(), "".into())]));
    assert_eq!(
        [read("'a', priority => -100"), read("'a', priority => 100")].map(|it| it.priority),
        [-100, 100]
    );
    for zone in ["UTC", "Asia/Tokyo", "America/New_York"] {
        admin.run(&format!("set timezone = '{zone}'; set datestyle = 'German'"));
        for due in ["0001-01-01T00:00:00Z", "2030-01-02T03:04:05.000006Z", "9999-12-30T22:00:00Z"] {
            let found = read(&format!("'a', due => '{due}'")).due;
            assert_eq!(found, Some(due.parse().unwrap()), "{zone}");
        }
    }
}
