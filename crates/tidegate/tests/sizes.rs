//! Everything has a bound in bytes: what is too large is refused at once, and much that is not arrives in portions.

mod support;

use serde_json::{Value, json};
use support::{accepted, database, drop_database, on_every_store, within};
use tidegate::{Error, LARGEST_OUTPUT, LARGEST_PAYLOAD, Refusal, RunId, State, Tidegate};
use tokio_postgres::NoTls;

/// `echo` gives back what it gets, `measure` the length of its `text`, `swell` so many bytes, and `complain` fails with so many.
fn define(tide: &Tidegate) {
    tide.action("echo", |_, text: String| async move { Ok::<_, String>(text) });
    tide.action("measure", |_, input: Value| async move {
        input["text"].as_str().map(str::len).ok_or("there is no text")
    });
    tide.action("swell", |_, bytes: usize| async move { Ok::<_, String>("x".repeat(bytes)) });
    tide.action("complain", |_, bytes: usize| async move { Err::<(), _>("x".repeat(bytes)) });
}

fn is_too_large<T>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(Error::Refused(Refusal::TooLarge { most: LARGEST_PAYLOAD, .. })))
}

async fn failure(tide: &Tidegate, action: &str, bytes: usize) -> String {
    let run = tide.submit(action, &bytes).await.unwrap();
    match run.result::<String>().await {
        Err(Error::Failed { error, .. }) => error,
        other => panic!("it fails: {:?}", other.map(|output| output.len())),
    }
}

const SAID: &str = "its output: it is too large, it has 64.1 MiB and 64 MiB are allowed";

#[tokio::test]
async fn what_is_too_large_is_refused_and_what_is_not_is_taken() {
    on_every_store(|tide| async move {
        define(&tide);
        let mut working = tide.work(4).start().await.unwrap();
        let large = "x".repeat(LARGEST_PAYLOAD);
        assert!(is_too_large(&tide.submit("echo", &large).await));
        assert!(is_too_large(&tide.submit("unheard-of", &large).key("once").await));
        let fits = "x".repeat(LARGEST_PAYLOAD - 100);
        let run = tide.submit("echo", &fits).await.unwrap();
        assert!(run.result::<String>().await.unwrap() == fits);

        let texts = ["one", &large, "three"];
        let runs = tide.submit_many(texts.map(|text| tide.submit("echo", &text))).await;
        assert!(is_too_large(&runs[1]));
        for (at, text) in [(0, "one"), (2, "three")] {
            assert_eq!(runs[at].as_ref().unwrap().result::<String>().await.unwrap(), text);
        }

        assert_eq!(failure(&tide, "swell", LARGEST_OUTPUT).await, SAID);
        assert_eq!(failure(&tide, "complain", 1_000_000).await.len(), 64 * 1024 + "…".len());
        working.stop().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn much_arrives_in_portions_from_a_process_that_does_not_lead() {
    let database = database().await;
    let leader = Tidegate::builder(&database.url).name("leader").open().await.unwrap();
    let other = Tidegate::builder(&database.url).name("other").open().await.unwrap();
    define(&leader);
    define(&other);
    // 300 at once: what comes back is as much as what went there.
    let mut working = other.work(300).start().await.unwrap();
    let text = "x".repeat(100_000);
    let submits: Vec<_> = (0..300).map(|_| other.submit("echo", &text)).collect();
    for run in within(other.submit_many(submits)).await {
        assert!(within(run.unwrap().result::<String>()).await.unwrap() == text);
    }
    let large = "x".repeat(LARGEST_PAYLOAD);
    assert!(is_too_large(&within(async { other.submit("echo", &large).await }).await));
    assert_eq!(within(failure(&other, "swell", LARGEST_OUTPUT)).await, SAID);
    within(working.stop()).await.unwrap();
    within(other.close()).await;
    within(leader.close()).await;
    drop_database(database).await;
}

#[tokio::test]
async fn a_letter_that_is_too_large_becomes_a_run_that_was_refused() {
    let database = database().await;
    let tide = Tidegate::open(&database.url).await.unwrap();
    define(&tide);
    let (mut client, connection) = tokio_postgres::connect(&database.direct_url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let transaction = client.transaction().await.unwrap();
    let large = "x".repeat(LARGEST_PAYLOAD);
    assert!(is_too_large(&tide.submit("echo", &large).in_transaction(&transaction).await));
    // As it was left before anybody asked how large it is.
    let letter = "insert into tidegate.mailbox (id, content) \
                  select gen_random_uuid(), jsonb_build_object('name', 'echo', 'input', repeat('x', 17000000)) \
                  returning id::text";
    let id: String = transaction.query_one(letter, &[]).await.unwrap().get(0);
    let id = RunId(id.parse::<uuid::Uuid>().unwrap().as_u128());
    transaction.commit().await.unwrap();

    let run = within(accepted(&tide, id)).await;
    let ended = within(run.wait()).await.unwrap();
    assert_eq!(ended.state(), State::Refused);
    let Err(Error::NeverStarted { error, .. }) = within(run.result::<String>()).await else { panic!() };
    assert_eq!(error.as_deref(), Some("it is too large, it has 16.3 MiB and 16 MiB are allowed"));
    within(tide.close()).await;
    drop_database(database).await;
}

#[tokio::test]
async fn a_loop_over_large_items_is_rendered_in_portions() {
    const FLOW: &str = r#"
flow: large
inputs: { text: { type: string } }
steps:
  each:
    with_items: "{{ range(20) | list }}"
    action: measure
    inputs: { text: "{{ inputs.text }}{{ item }}" }
outputs: { done: "{{ steps.each.output.done }}" }
"#;
    on_every_store(|tide| async move {
        define(&tide);
        tide.flow(FLOW).unwrap();
        let mut working = tide.work(8).start().await.unwrap();
        let inputs = json!({ "text": "x".repeat(1_000_000) });
        let run = tide.submit("large", &inputs).await.unwrap();
        let outputs = run.result::<Value>().await.unwrap();
        assert_eq!(outputs, json!({ "done": 20 }));
        working.stop().await.unwrap();
    })
    .await;
}

/// 90 texts of 200 kB, more than a run may put out.
const LARGE_LIST: &str = "
flow: large-list
steps:
  make: { action: make }
  each:
    after: [make]
    when: '{{ steps.make.output | length == 90 }}'
    with_items: '{{ steps.make.output }}'
    concurrency: 8
    action: say-again
    inputs: { text: '{{ item }}' }
  all:
    after: [each]
    action: measure
    inputs: { text: \"{{ steps.each.output['items'] }}\" }
  other:
    after: [each, all]
    when: '{{ steps.all.state == \"failed\" }}'
    action: measure
    inputs: { text: '{{ steps.each.output.done }} of 90, {{ steps.each.output.cancelled }} cancelled' }
outputs: { length: '{{ steps.other.output }}', why: '{{ steps.all.error }}' }
";

#[tokio::test(flavor = "multi_thread")]
async fn a_large_output_is_the_list_of_a_loop_and_what_a_loop_put_out_is_counted_without_being_read() {
    on_every_store(|tide| async move {
        define(&tide);
        tide.action("make", |_, _: Value| async move { Ok::<_, String>(vec!["x".repeat(200_000); 90]) });
        tide.action("say-again", |_, input: Value| async move { Ok::<_, String>(input["text"].clone()) });
        tide.flow(LARGE_LIST).unwrap();
        let mut working = tide.work(8).start().await.unwrap();
        let run = tide.submit("large-list", &()).await.unwrap();
        let outputs = run.result::<Value>().await.unwrap();
        assert_eq!(outputs["length"], "90 of 90, 0 cancelled".len());
        let why = "the output of the loop `each` is larger than 16 MiB; \
                   `steps.each.output.done`, `.failed` and `.cancelled` can be used nevertheless";
        assert_eq!(outputs["why"], why);
        working.stop().await.unwrap();
    })
    .await;
}
