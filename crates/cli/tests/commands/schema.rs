//! `tidegate schema`, from the outside.

use crate::support::Test;

#[test]
fn the_schema_is_printed_as_it_is() {
    let outcome = Test::new().args(["schema"]).run();
    let schema: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(schema, tidegate_flow::schema());
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(schema["$defs"]["step"]["properties"]["timeout"]["type"], "string");
}
