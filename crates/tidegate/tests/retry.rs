//! What has ended is done again, and what went well is not.

mod support;

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use support::{database, drop_database, on_every_store, within};
use tidegate::{Error, Refusal, RunId, State, Tidegate};

/// A step that puts something out, a loop, a flow inside and a condition before one that fails for a while.
const CHAIN: &str = "
flow: chain
inputs: { word: { type: string } }
tags: { team: data }
steps:
  first: { action: note, inputs: { name: first, word: '{{ inputs.word }}' } }
  each:
    after: [first]
    with_items: '{{ steps.first.output.list }}'
    action: note
    inputs: { name: each, word: '{{ item }}' }
  inside: { after: [first], flow: inner, inputs: { word: '{{ steps.first.output.said }}' } }
  never: { after: [first], when: '{{ inputs.word == 0 }}', action: note, inputs: { name: never } }
  last:
    after: [each, inside, never]
    always: true
    action: fragile
    inputs:
      name: last
      word: \"{{ steps.each.output['items'] | map(attribute='output') | map(attribute='said') | join('+') }}\"
      more: '{{ steps.inside.output.said }} {{ steps.each.output.done }} {{ steps.never.state }}'
  rescue:
    after: [last]
    when: \"{{ steps.last.state == 'failed' and inputs.word == 'rescued' }}\"
    action: note
    inputs: { name: rescue }
outputs: { said: '{{ steps.last.output.said }}', more: '{{ steps.last.output.more }}' }
---
flow: inner
inputs: { word: { type: string } }
steps: { deep: { action: note, inputs: { name: deep, word: '{{ inputs.word }}' } } }
outputs: { said: '{{ steps.deep.output.said }}' }
";

/// How often each was called, and whether what is fragile breaks.
#[derive(Clone, Default)]
struct World(Arc<Mutex<(BTreeMap<String, u32>, bool)>>);

impl World {
    fn define(&self, tide: &Tidegate) {
        let (noted, fragile) = (self.clone(), self.clone());
        tide.action("note", move |_, input: Value| {
            noted.count(&input);
            async move { Ok::<_, String>(said(&input)) }
        });
        tide.action("fragile", move |_, input: Value| {
            fragile.count(&input);
            let breaks = fragile.0.lock().unwrap().1;
            async move { if breaks { Err("it broke".to_owned()) } else { Ok(said(&input)) } }
        });
        tide.flow(CHAIN).unwrap();
    }

    fn count(&self, input: &Value) {
        let name = input["name"].as_str().unwrap_or("job").to_owned();
        *self.0.lock().unwrap().0.entry(name).or_default() += 1;
    }

    fn breaks(&self, breaks: bool) {
        self.0.lock().unwrap().1 = breaks;
    }

    /// Who was called since this was last asked, and how often.
    fn called(&self) -> String {
        let called = std::mem::take(&mut self.0.lock().unwrap().0);
        called.iter().map(|(name, times)| format!("{name} {times}")).collect::<Vec<_>>().join(", ")
    }
}

fn said(input: &Value) -> Value {
    let word = input["word"].as_str().unwrap_or_default();
    json!({ "said": format!("<{word}>"), "list": ["x", "y"], "more": input["more"] })
}

async fn failed(tide: &Tidegate) -> RunId {
    let submit = tide.submit("chain", &json!({ "word": "hi" })).tag("env", "test").priority(3).key("once");
    let run = submit.await.unwrap();
    assert_eq!(run.wait().await.unwrap().state(), State::Failed);
    run.id()
}

fn outputs() -> Value {
    json!({ "said": "<<x>+<y>>", "more": "<<hi>> 2 skipped" })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_succeeded_is_reused_also_by_a_retry_of_a_retry() {
    on_every_store(async |tide| {
        let world = World::default();
        world.define(&tide);
        world.breaks(true);
        let _working = tide.work(4).start().await.unwrap();
        let first = failed(&tide).await;
        assert_eq!(world.called(), "deep 1, each 2, first 1, last 1");
        let second = tide.retry(first).await.unwrap();
        assert_eq!(second.wait().await.unwrap().state(), State::Failed);
        assert_eq!(world.called(), "last 1");
        world.breaks(false);
        let third = tide.retry(second.id()).await.unwrap();
        assert_eq!(third.result::<Value>().await.unwrap(), outputs());
        assert_eq!(world.called(), "last 1");

        let refused = async |run| tide.retry(run).await.map(drop).unwrap_err().to_string();
        let id = third.id();
        let says = format!(
            "{id} succeeded; there is nothing to retry, unless all of it is to be repeated from the start"
        );
        assert_eq!(refused(id).await, says);
        assert!(matches!(tide.retry(RunId(7)).await, Err(Error::UnknownRun(RunId(7)))));
        let fourth = tide.retry(id).from_start().await.unwrap();
        assert_eq!(fourth.result::<Value>().await.unwrap(), outputs());
        assert_eq!(world.called(), "deep 1, each 2, first 1, last 1");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_open_is_refused_and_an_action_is_submitted_anew() {
    on_every_store(async |tide| {
        let world = World::default();
        world.define(&tide);
        world.breaks(true);
        let job = tide.submit("fragile", &json!({ "word": "hi" })).await.unwrap();
        let open = tide.retry(job.id()).await.map(drop);
        assert!(matches!(&open, Err(Error::Refused(Refusal::StillOpen(id))) if *id == job.id()), "{open:?}");
        let _working = tide.work(4).start().await.unwrap();
        assert_eq!(job.wait().await.unwrap().state(), State::Failed);
        world.breaks(false);
        let again = tide.retry(job.id()).await.unwrap();
        assert_eq!(again.result::<Value>().await.unwrap()["said"], "<hi>");
        assert_eq!(world.called(), "job 2");
    })
    .await;
}

#[tokio::test]
async fn a_process_that_follows_retries_through_the_one_that_leads() {
    let database = database().await;
    let world = World::default();
    let open = async |name: &str| {
        let tide = Tidegate::builder(&database.url).name(name).open().await.unwrap();
        world.define(&tide);
        tide
    };
    let (leads, follows) = (open("leads").await, open("follows").await);
    world.breaks(true);
    let mut working = follows.work(4).start().await.unwrap();
    let run = within(failed(&follows)).await;
    world.called();
    world.breaks(false);
    let again = within(async { follows.retry(run).await.unwrap() }).await;
    assert_eq!(within(again.result::<Value>()).await.unwrap(), outputs());
    assert_eq!(world.called(), "last 1");
    let unknown = within(async { follows.retry(RunId(7)).await.map(drop) }).await;
    assert!(matches!(unknown, Err(Error::UnknownRun(RunId(7)))), "{unknown:?}");
    within(working.stop()).await.unwrap();
    within(follows.close()).await;
    within(leads.close()).await;
    drop_database(database).await;
}
