//! Limits hold, can be changed while everything runs, and are named as explanations name them.

mod support;

use std::time::Duration;
use support::{Gate, on_every_store};
use tidegate::{Error, QuotaWindow, Refusal, State, Tidegate, WhenBusy};
use tokio::sync::mpsc;

fn gated(tide: &Tidegate, action: &str) -> (&'static Gate, mpsc::UnboundedReceiver<String>) {
    let (gate, arrivals) = Gate::new();
    tide.action(action, move |_, input: serde_json::Value| async move {
        gate.pass(input["name"].as_str().unwrap_or_default().to_owned()).await;
        Ok::<_, String>(())
    });
    (gate, arrivals)
}

fn named(name: &str) -> serde_json::Value {
    serde_json::json!({ "name": name })
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrency_and_pools_hold_and_say_where_they_were_declared() {
    on_every_store(async |tide| {
        let (gate, mut arrivals) = Gate::new();
        tide.pool("gpu", 4);
        tide.action("resize", move |_, name: String| async move {
            gate.pass(name).await;
            Ok::<_, String>(())
        })
        .pool("gpu", 2)
        .concurrency(3);
        let _working = tide.work(10).start().await.unwrap();
        let runs = tide.submit_many((0..6).map(|n| tide.submit("resize", &n.to_string()))).await;
        let runs: Vec<_> = runs.into_iter().map(Result::unwrap).collect();
        for _ in 0..2 {
            arrivals.recv().await.unwrap();
        }
        let why = runs[2].explain().await.unwrap().unwrap().to_string();
        assert!(why.contains("pool gpu") && why.contains("needs 2, 0 of 4 free"), "{why}");
        assert!(why.contains(&format!("declared at {}:", file!())), "{why}");
        tide.limits().set("pool:gpu", 100).by("ada").await.unwrap();
        arrivals.recv().await.unwrap();
        let why = runs[3].explain().await.unwrap().unwrap().to_string();
        assert!(why.contains("action resize") && why.contains("3 of 3 in use"), "{why}");
        gate.open(6);
        for run in &runs {
            run.result::<()>().await.unwrap();
        }
        assert_eq!(gate.most(), 3);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tag_bounds_the_runs_of_flows_that_carry_it() {
    on_every_store(async |tide| {
        let (gate, mut arrivals) = gated(&tide, "load");
        tide.flow(
            "flow: import
inputs: { name: { type: string, required: true } }
steps: { load: { action: load, inputs: { name: '{{ inputs.name }}' } } }
---
limits: { tags: [{ tag: tenant, per_value: 1 }] }
",
        )
        .unwrap();
        let _working = tide.work(10).start().await.unwrap();
        let submit = |name: &str, tenant: &str| tide.submit("import", &named(name)).tag("tenant", tenant);
        let first = submit("first", "acme").await.unwrap();
        let second = submit("second", "acme").await.unwrap();
        submit("other", "other").await.unwrap();
        let mut begun = [arrivals.recv().await.unwrap(), arrivals.recv().await.unwrap()];
        begun.sort();
        assert_eq!(begun, ["first", "other"]);
        let why = second.explain().await.unwrap().unwrap().to_string();
        assert!(why.contains("runs with tenant=acme") && why.contains("1 of 1 in use"), "{why}");
        tide.limits().set("tag:tenant=acme", 2).await.unwrap();
        assert_eq!(arrivals.recv().await.unwrap(), "second");
        gate.open(3);
        first.result::<serde_json::Value>().await.unwrap();
        second.result::<serde_json::Value>().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_gives_everybody_a_limit_of_their_own() {
    on_every_store(async |tide| {
        let (gate, mut arrivals) = Gate::new();
        tide.action("mail", move |_, input: serde_json::Value| async move {
            gate.pass(input["tenant"].to_string()).await;
            Ok::<_, String>(())
        })
        .concurrency(1)
        .key("{{ inputs.tenant }}");
        let _working = tide.work(10).start().await.unwrap();
        let submit = |tenant: &str| tide.submit("mail", &serde_json::json!({ "tenant": tenant }));
        submit("a").await.unwrap();
        let second = submit("a").await.unwrap();
        submit("b").await.unwrap();
        let begun = [arrivals.recv().await.unwrap(), arrivals.recv().await.unwrap()];
        assert_eq!(begun, ["\"a\"", "\"b\""]);
        let why = second.explain().await.unwrap().unwrap().to_string();
        assert!(why.contains("action mail for a"), "{why}");
        let keyless = tide.submit("mail", &1).await.unwrap_err();
        assert!(matches!(keyless, Error::Inputs { .. }), "{keyless}");
        gate.open(3);
        second.result::<()>().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_action_and_a_run_can_be_paused() {
    on_every_store(async |tide| {
        let (gate, mut arrivals) = gated(&tide, "load");
        gate.open(2);
        let _working = tide.work(10).start().await.unwrap();
        tide.limits().pause("action:load").await.unwrap();
        let run = tide.submit("load", &named("one")).await.unwrap();
        let why = run.explain().await.unwrap().unwrap().to_string();
        assert!(why.contains("action load") && why.contains("paused"), "{why}");
        run.pause().await.unwrap();
        tide.limits().resume("action:load").await.unwrap();
        let other = tide.submit("load", &named("two")).await.unwrap();
        other.result::<()>().await.unwrap();
        assert_eq!(arrivals.recv().await.unwrap(), "two");
        run.resume().await.unwrap();
        run.result::<()>().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newcomer_may_be_turned_away_or_take_the_place_of_who_waits() {
    on_every_store(async |tide| {
        let (gate, mut arrivals) = gated(&tide, "load");
        let load = |when_busy| {
            tide.action("load", move |_, input: serde_json::Value| async move {
                gate.pass(input["name"].to_string()).await;
                Ok::<_, String>(())
            })
            .concurrency(1)
            .when_busy(when_busy);
        };
        load(WhenBusy::Reject);
        let mut working = tide.work(10).start().await.unwrap();
        let first = tide.submit("load", &named("first")).await.unwrap();
        arrivals.recv().await.unwrap();
        let refused = tide.submit("load", &named("second")).await.unwrap_err();
        assert!(matches!(refused, Error::Refused(Refusal::Busy { .. })), "{refused}");
        load(WhenBusy::Replace);
        let second = tide.submit("load", &named("second")).await.unwrap();
        let third = tide.submit("load", &named("third")).await.unwrap();
        let replaced = second.result::<()>().await.unwrap_err();
        assert!(matches!(replaced, Error::NeverStarted { state: State::Replaced, .. }), "{replaced}");
        gate.open(2);
        first.result::<()>().await.unwrap();
        third.result::<()>().await.unwrap();
        working.stop().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rates_and_quotas_let_so_many_start() {
    on_every_store(async |tide| {
        let hour = Duration::from_secs(3600);
        tide.action("paced", |_, ()| async { Ok::<_, String>(()) }).rate(1, hour).burst(2);
        tide.action("metered", |_, ()| async { Ok::<_, String>(()) }).quota(2, QuotaWindow::Month);
        let _working = tide.work(10).start().await.unwrap();
        for (action, why) in [("paced", "rate of paced"), ("metered", "quota of metered")] {
            let mut runs = Vec::new();
            for _ in 0..3 {
                runs.push(tide.submit(action, &()).await.unwrap());
            }
            runs[0].result::<()>().await.unwrap();
            runs[1].result::<()>().await.unwrap();
            let said = runs[2].explain().await.unwrap().unwrap().to_string();
            assert!(said.contains(why) && said.contains("used up, more in"), "{said}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_is_refused() {
    on_every_store(async |tide| {
        tide.action("lost", |_, ()| async { Ok::<_, String>(()) }).pool("nowhere", 1);
        let refused = tide.submit("lost", &()).await.unwrap_err();
        assert_eq!(refused.to_string(), "there is no pool `nowhere`");
        tide.pool("nowhere", 1);
        tide.submit("lost", &()).await.unwrap();
        let slip = tide.limits().set("pol:nowhere", 2).await.unwrap_err();
        assert_eq!(slip.to_string(), "there is no kind of limit `pol`; did you mean `pool`?");
        let unknown = tide.limits().set("pool:nothing", 2).await.unwrap_err();
        assert!(matches!(unknown, Error::Refused(Refusal::UnknownPool(_))), "{unknown}");
        let wrong = tide.flow("flow: a\nsteps: { b: { rnu: [ls] } }\n").unwrap_err();
        let place = format!("{}:{}:2:", file!(), line!() - 1);
        assert!(wrong.to_string().starts_with(&place), "{wrong}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_lasts_for_a_while_ends_by_itself() {
    on_every_store(async |tide| {
        let (gate, mut arrivals) = gated(&tide, "load");
        gate.open(1);
        let _working = tide.work(1).start().await.unwrap();
        tide.limits().set("action:load", 0).lasting(Duration::from_millis(20)).await.unwrap();
        let run = tide.submit("load", &named("one")).await.unwrap();
        run.result::<()>().await.unwrap();
        assert_eq!(arrivals.recv().await.unwrap(), "one");
    })
    .await;
}

#[tokio::test]
async fn what_would_let_nothing_start_is_refused() {
    let tide = Tidegate::open("memory:").await.unwrap();
    let refused = async |name: &str| match tide.submit("fine", &()).await {
        Err(Error::Refused(Refusal::BadAction { action, .. })) => assert_eq!(action.as_str(), name),
        _ => panic!("`{name}` is not refused"),
    };
    let action = |name: &str| tide.action(name, |_, (): ()| async { Ok::<_, String>(()) });
    action("a").concurrency(0);
    refused("a").await;
    action("a").concurrency(1);
    action("b").rate(0, Duration::from_secs(1));
    refused("b").await;
    action("b").rate(1, Duration::ZERO);
    refused("b").await;
    action("b").retry(0, Duration::ZERO);
    refused("b").await;
    action("b").quota(0, QuotaWindow::Day);
    refused("b").await;
    action("b");
    tide.submit("fine", &()).await.unwrap();
    assert!(matches!(tide.submit("", &()).await, Err(Error::Refused(Refusal::NoName))));
    tide.close().await;
}
