//! The flows that people start from, each run as they would run it.

use crate::support::{Server, Test, answer, golden, golden_as_it_is};
use std::path::Path;
use std::time::Duration;

fn example(name: &str) -> Test {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    Test::new().file(name, &text).args(["run", name])
}

#[test]
fn every_example_is_run_by_a_test() {
    let tests = [include_str!("examples.rs"), include_str!("run.rs"), include_str!("serve.rs")].concat();
    let examples = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")).unwrap();
    let names: Vec<String> =
        examples.map(|example| example.unwrap().file_name().into_string().unwrap()).collect();
    assert!(names.contains(&"packs".to_owned()));
    assert!(names.len() >= 3);
    for name in names.iter().filter(|name| *name != "packs") {
        let [file, folder] = [format!("\"{name}\""), format!("examples/{name}\"")];
        assert!(tests.contains(&file) || tests.contains(&folder), "{name}");
    }
}

#[test]
fn retries() {
    let outcome = example("retries.yaml").run();
    assert!(outcome.stdout.contains("worked at attempt 3; the other is timed_out"), "{}", outcome.stdout);
    assert!(outcome.stderr.contains("come back later"), "{}", outcome.stderr);
}

#[test]
fn fan_out() {
    let test = example("fan-out.yaml");
    golden("example-fan-out", &test.run().stdout);
    let test = test.args(["run", "fan-out.yaml", "-i", "bad=3"]).status(1);
    let said = test.run().stderr;
    assert!(said.contains("step `check`: 3 of 12 items failed"), "{said}");
}

/// Two of one tenant at once would fail: each makes a folder of that name.
#[test]
fn tenants() {
    let outcome = example("tenants.yaml").run();
    assert_eq!(outcome.stdout.matches('/').count(), 6, "{}", outcome.stdout);
}

#[test]
fn sub_flows() {
    let test = example("sub-flows.yaml").args(["run", "sub-flows.yaml", "-i", "version=1.4.0"]);
    golden("example-sub-flows", &test.run().stdout);
}

#[test]
fn report() {
    let test = example("report.yaml");
    assert!(test.run().stdout.contains("words   21"));
    golden_as_it_is("example-report", &std::fs::read_to_string(test.path("report.md")).unwrap());
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
    assert!(kept.matches("calling with the token").count() > 1, "the output is kept, and so are lines");
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

/// With its pack and what the pack needs.
#[test]
fn billing() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let others = ["tidegate.yaml", "packs/billing/charge.yaml", "packs/billing/month.yaml"];
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let test = others.iter().fold(example("billing.yaml"), |test, name| test.file(name, &read(name)));
    let outcome = test.run();
    assert_eq!(outcome.stdout, "report  3 customers paid 2700 cents\n", "{}", outcome.stderr);
    let test = test.args(["check", "."]);
    assert_eq!(test.run().stderr, "4 files, no errors\n");
    let test = test.args(["plan", "billing.yaml"]);
    golden_as_it_is("example-billing-plan", &test.run().stdout);
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

/// Each customer's pages are asked for until the last, one that fails is asked for again, and a second run replaces what
/// the first one stored.
#[test]
fn paging() {
    let server = Server::start(|target, before| {
        let page = |count: usize, more: bool| {
            let orders = vec!["{}"; count].join(",");
            let body = format!("{{\"orders\":[{orders}],\"paging\":{{\"hasMore\":{more}}}}}");
            answer(200, "content-type: application/json\r\n", &body)
        };
        match (target, before) {
            ("/customers/ada/orders?page=1", _) => page(10, true),
            ("/customers/ada/orders?page=2", 0) => answer(503, "", "busy"),
            ("/customers/ada/orders?page=2", _) => page(10, true),
            ("/customers/ada/orders?page=3", _) => page(4, false),
            ("/customers/grace/orders?page=1", _) => page(0, false),
            _ => answer(404, "", ""),
        }
    });
    let api = format!("api=http://{}", server.address);
    let test = example("paging.yaml").args(["run", "paging.yaml", "-i", &api, "-q", "-o", "json"]);
    for _ in 0..2 {
        let outcome = test.run();
        assert_eq!(outcome.stdout, "{\"orders\":[24,0],\"pages\":[3,1]}\n", "{}", outcome.stderr);
    }
    assert_eq!(server.asked("/customers/ada/orders?page=2").len(), 3);
    assert_eq!(server.asked("/customers/ada/orders?page=4").len(), 0);
}
