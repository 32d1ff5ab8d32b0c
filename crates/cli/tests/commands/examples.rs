//! The flows that people start from, each run as they would run it.

use crate::support::{Server, Test, answer, golden};
use std::path::Path;
use std::time::Duration;

fn example(name: &str) -> Test {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    Test::new().file(name, &text).args(["run", name])
}

#[test]
fn every_example_is_run_by_a_test() {
    let tests = [include_str!("examples.rs"), include_str!("run.rs")].concat();
    let examples = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")).unwrap();
    let names: Vec<String> =
        examples.map(|example| example.unwrap().file_name().into_string().unwrap()).collect();
    assert!(names.len() >= 3);
    for name in names {
        assert!(tests.contains(&format!("\"{name}\"")), "{name}");
    }
}

#[test]
fn retries() {
    let outcome = example("retries.yaml").run();
    assert!(outcome.stdout.contains("worked at attempt 3; the other is timed_out"), "{}", outcome.stdout);
    assert!(outcome.stderr.contains("come back later"), "{}", outcome.stderr);
}

/// Not on the screen, not in the outputs, and not in any byte of the store.
#[test]
fn secrets() {
    let test = example("secrets.yaml");
    let mut command = test.command();
    command.env("EXAMPLE_TOKEN", "open-sesame");
    let outcome = test.run_as(command);
    golden("example-secrets", &outcome.stdout);
    let kept = test.kept();
    assert!(kept.contains("calling with the token"), "the output is kept");
    for text in [&outcome.stdout, &outcome.stderr, &kept] {
        assert!(!text.contains("open-sesame"), "{text}");
    }
}

#[test]
fn a_secret_that_is_missing_fails_its_step_and_says_which() {
    let outcome = example("secrets.yaml").status(1).run();
    assert!(
        outcome.stderr.contains("the secret `env:EXAMPLE_TOKEN` is not set on this worker"),
        "{}",
        outcome.stderr
    );
}

/// A server that is busy at first and has two pages is asked again when it said so, and its missing page is an answer.
#[test]
fn scraping() {
    let server = Server::start(|target, before| {
        let page = |title| answer(200, "content-type: application/json\r\n", title);
        match (target, before) {
            ("/books?page=1", _) => page("{\"title\": \"Emma\"}"),
            ("/books?page=2", 0) => answer(429, "retry-after: 1\r\n", "slow down"),
            ("/books?page=2", _) => page("{\"title\": \"Persuasion\"}"),
            _ => answer(404, "", ""),
        }
    });
    let test = example("scraping.yaml");
    let api = format!("api=http://{}", server.address);
    let outcome = test.args(["run", "scraping.yaml", "-i", &api, "-i", "pages=3", "-o", "json"]).run();
    let outputs = "{\"report\":\"2 pages found, 1 missing\",\"titles\":[\"Emma\",\"Persuasion\",null]}\n";
    assert_eq!(outcome.stdout, outputs, "{}", outcome.stderr);
    let [first, second] = server.asked("/books?page=2")[..] else { panic!("it is asked twice") };
    assert!(
        second - first >= Duration::from_secs(1),
        "its own pause is shorter than what the server asks for"
    );
    assert_eq!(server.asked("/books?page=3").len(), 1);
}

#[test]
fn pipeline() {
    let test = example("pipeline.yaml").args(["run", "pipeline.yaml", "-q", "-o", "json"]);
    let outputs: serde_json::Value = serde_json::from_str(&test.run().stdout).unwrap();
    let row = |shop: &str, sales: u64, cents: u64| serde_json::json!({ "shop": shop, "sales": sales, "cents": cents });
    let report = [row("harbour", 70, 9485), row("station", 70, 9485), row("market", 60, 7830)];
    assert_eq!(outputs, serde_json::json!({ "loaded": 200, "best": "harbour", "report": report }));
    assert!(test.path("warehouse.db").exists());
    let again: serde_json::Value = serde_json::from_str(&test.run().stdout).unwrap();
    assert_eq!(again, outputs, "what was there is replaced");
}
