//! What the guides show is what the language accepts.

use crate::support::Test;

const README: &str = include_str!("../../../../README.md");
const FIRST_FLOW: &str = include_str!("../../../../docs/guides/first-flow.md");
const HTTP: &str = include_str!("../../../../docs/guides/http.md");
const PACKS: &str = include_str!("../../../../docs/guides/packs.md");
const SQL: &str = include_str!("../../../../docs/guides/sql.md");
const CHAINS: &str = include_str!("../../../../docs/guides/chains.md");

/// The texts between fences of this kind.
fn fenced<'a>(text: &'a str, kind: &str) -> Vec<&'a str> {
    let open = format!("```{kind}\n");
    text.split(&open).skip(1).filter_map(|rest| rest.split("\n```").next()).collect()
}

/// The first column of the tables under a heading: names in backticks.
fn fields<'a>(text: &'a str, heading: &str) -> Vec<&'a str> {
    let (_, section) = text.split_once(heading).expect("the guide has this heading");
    let section = section.split("\n## ").next().unwrap_or_default();
    section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect()
}

#[test]
fn every_flow_in_the_guides_is_valid() {
    let flows = [README, FIRST_FLOW, HTTP, PACKS, SQL, CHAINS].map(|guide| fenced(guide, "yaml")).concat();
    assert!(flows.len() >= 8);
    for (number, flow) in flows.iter().enumerate() {
        let file = format!("{number}.yaml");
        Test::new().file(&file, flow).args(["check", &file]).run();
    }
}

#[test]
fn every_field_in_the_guide_exists() {
    let step = fields(FIRST_FLOW, "## The fields of a step");
    let flow = fields(FIRST_FLOW, "## The fields of a flow");
    assert!(step.contains(&"max_losses") && flow.contains(&"fail_fast"));
    for field in step {
        let text = format!("flow: a\nsteps:\n  b:\n    {field}: null\n");
        let test = Test::new().file("a.yaml", &text).args(["check", "a.yaml"]).status(2);
        assert!(!test.run().stderr.contains("unknown field"), "{field}");
    }
    let http = fields(HTTP, "## The fields of `http`");
    let sql = fields(SQL, "## The fields of `sql`");
    assert!(http.contains(&"max_size") && sql.contains(&"transaction"));
    let of_works = http.iter().map(|field| ("http", field)).chain(sql.iter().map(|field| ("sql", field)));
    for (work, field) in of_works {
        let text = format!("flow: a\nsteps:\n  b:\n    {work}: {{ {field}: null }}\n");
        let test = Test::new().file("a.yaml", &text).args(["check", "a.yaml"]).status(2);
        assert!(!test.run().stderr.contains("unknown field"), "{field}");
    }
    let (member, repeat) =
        (fields(CHAINS, "## The fields of a member"), fields(CHAINS, "## Again and again"));
    assert!(member.contains(&"retry") && repeat.contains(&"while"));
    let of_members = member.iter().map(|field| format!("do: [{{ {field}: null }}]"));
    for text in
        of_members.chain(repeat.iter().map(|field| format!("repeat: {{ {field}: null }}\n    run: [ls]")))
    {
        let text = format!("flow: a\nsteps:\n  b:\n    {text}\n");
        let test = Test::new().file("a.yaml", &text).args(["check", "a.yaml"]).status(2);
        assert!(!test.run().stderr.contains("unknown field"), "{text}");
    }
    for field in flow {
        let text = format!("flow: a\nsteps: {{ b: {{ run: [ls] }} }}\n{field}: null\n");
        let test = Test::new().file("a.yaml", &text).args(["check", "a.yaml"]);
        let known = test.command().output().expect("the binary starts").stderr;
        assert!(!String::from_utf8_lossy(&known).contains("unknown field"), "{field}");
    }
}

#[test]
fn the_first_flow_does_what_the_guide_says() {
    let flow = fenced(FIRST_FLOW, "yaml")[0];
    let test = Test::new().file("greet.yaml", flow);
    let test = test.args(["run", "greet.yaml", "-q", "-i", "name=Ada", "-o", "json"]);
    assert_eq!(test.run().stdout, "{\"said\":\"HELLO, ADA\"}\n");
}
