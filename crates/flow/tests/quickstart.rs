//! The example in the manual is a flow that loads, and means what it says.

use tidegate_core::model::Work;

#[test]
fn the_quickstart_loads() {
    let text = include_str!("../../../examples/quickstart.yaml");
    let document = tidegate_flow::parse("quickstart.yaml", text).unwrap_or_else(|errors| panic!("{errors}"));
    let flow = &document.flows[0];
    assert_eq!(flow.steps.len(), 6);
    assert_eq!(flow.steps[1].each.as_ref().and_then(|each| each.window), Some(3));
    assert!(flow.steps.iter().all(|step| matches!(step.work, Work::Run(_))));
    assert_eq!(document.limits.map(|limits| limits.pools[0].slots), Some(2));
}
