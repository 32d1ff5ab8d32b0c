//! Applications leave letters inside transactions of their own.

use crate::conformance::Backend;
use crate::conformance::ledger::lead;
use crate::place::{Place, ledger};
use std::sync::mpsc;
use std::time::Duration;
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
        "due": "2030-01-02T03:04:05+00:00",
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

#[test]
fn what_could_never_be_accepted_is_refused_where_it_is_submitted() {
    let mut ledger = ledger();
    let admin = ledger.place.admin();
    let long = "x".repeat(257);
    let wrong = [
        "null".to_owned(),
        "''".to_owned(),
        format!("'{long}'"),
        format!("'mail.send', key => '{long}'"),
        "'mail.send', priority => 101".to_owned(),
        "'mail.send', priority => null".to_owned(),
        "'mail.send', tags => null".to_owned(),
        "'mail.send', tags => '[]'".to_owned(),
        "'mail.send', tags => '{\"tenant\": 7}'".to_owned(),
        "'mail.send', due => 'infinity'".to_owned(),
        "'mail.send', due => '4000-01-01 BC'".to_owned(),
        "'mail.send', due => '20000-01-01'".to_owned(),
    ];
    for arguments in wrong {
        // Whatever else happens is an error, and so fails.
        admin.run(&format!(
            "do $$ begin perform tidegate.submit({arguments}); raise 'it was taken'; \
             exception when invalid_parameter_value then null; end $$"
        ));
    }
    assert_eq!(ledger.store.letters(0, 9).unwrap(), []);
}
