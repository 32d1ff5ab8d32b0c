//! Steps that ask servers, as `tidegate run` carries them out.

use crate::support::{Server, Test, answer};

/// A flow whose step `ask` is this, and whose step `report` tells what became of it.
fn flow(ask: &str, report: &str) -> String {
    let ask = ask.replace('\n', "\n    ");
    format!(
        "flow: ask
inputs:
  api: {{ type: string }}
steps:
  ask:
    {ask}
  report:
    after: [ask]
    always: true
    run: [echo, \"{report}\"]
outputs:
  said: \"{{{{ steps.report.output.stdout | trim }}}}\"
"
    )
}

fn test(address: &str, flow: &str) -> Test {
    let api = format!("api={address}");
    Test::new().file("ask.yaml", flow).args(["run", "ask.yaml", "-i", &api, "-o", "json"])
}

fn http(server: &Server) -> String {
    format!("http://{}", server.address)
}

#[test]
fn a_server_that_does_not_answer_is_given_up_and_asked_again() {
    let server = Server::start(|_, _| None);
    let ask = "http: { url: '{{ inputs.api }}/slow' }\ntimeout: 200ms\nretry: { attempts: 2, delay: 1ms, on: [timeout] }";
    let report = "{{ steps.ask.state }}: {{ steps.ask.error }}";
    let outcome = test(&http(&server), &flow(ask, report)).status(1).run();
    assert!(outcome.stderr.contains("ran longer than its timeout"), "{}", outcome.stderr);
    assert_eq!(server.asked("/slow").len(), 2);
}

#[test]
fn what_a_server_says_about_a_failure_can_be_used() {
    let server = Server::start(|_, _| answer(409, "content-type: application/json\r\n", "{\"id\": 7}"));
    let ask = "http: { url: '{{ inputs.api }}/make', json: { a: 1 } }\nretry: { attempts: 3, delay: 1ms, on: status }";
    let flow = flow(ask, "{{ steps.ask.output.status }} {{ steps.ask.output.body.id }}");
    let flow = flow.replace("always: true", "when: \"{{ steps.ask.state == 'failed' }}\"");
    let outcome = test(&http(&server), &flow).run();
    assert_eq!(outcome.stdout, "{\"said\":\"409 7\"}\n", "{}", outcome.stderr);
    assert!(outcome.stderr.contains("status 409 Conflict: {\"id\": 7}"), "{}", outcome.stderr);
    assert_eq!(server.asked("/make").len(), 3);
}

#[test]
fn what_cannot_get_better_is_not_tried_again() {
    let server = Server::start(|_, _| answer(404, "", ""));
    let ask =
        "http: { url: '{{ inputs.api }}/' }\nretry: { attempts: 3, delay: 1ms, on: ['status:5xx', connect] }";
    test(&http(&server), &flow(ask, "{{ steps.ask.state }}")).status(1).run();
    assert_eq!(server.asked("/").len(), 1);
}

/// Neither on the screen nor in any byte of the store, although the server says it aloud.
#[test]
fn a_token_is_sent_and_not_kept() {
    let server = Server::start(|_, before| match before {
        0 => answer(503, "", "not yet, open-sesame"),
        _ => answer(200, "x-said: open-sesame\r\n", "welcome, open-sesame"),
    });
    let ask = "http: { url: '{{ inputs.api }}/', auth: { bearer: { secret: 'env:API_TOKEN' } } }\nretry: { attempts: 2, delay: 1ms }";
    let test = test(&http(&server), &flow(ask, "{{ steps.ask.output.body }}"));
    let mut command = test.command();
    command.env("API_TOKEN", "open-sesame");
    let outcome = test.run_as(command);
    assert_eq!(outcome.stdout, "{\"said\":\"welcome, ***\"}\n");
    let kept = test.kept();
    assert!(kept.contains("welcome, ***"), "the output is kept");
    for text in [&outcome.stderr, &kept] {
        assert!(!text.contains("open-sesame"), "{text}");
    }
}

#[test]
fn certificates_are_checked_against_those_that_the_machine_trusts() {
    let (server, certificate) = Server::start_encrypted(|_, _| answer(200, "", "in private"));
    let ask = "http: { url: '{{ inputs.api }}/' }";
    let address = format!("https://localhost:{}", server.address.port());
    let test = test(&address, &flow(ask, "{{ steps.ask.output.body }}")).file("root.pem", &certificate);
    let mut command = test.command();
    command.env("SSL_CERT_FILE", test.path("root.pem")).env_remove("SSL_CERT_DIR");
    assert_eq!(test.run_as(command).stdout, "{\"said\":\"in private\"}\n");

    let test = test.args(["run", "ask.yaml", "-i", &format!("api={address}")]).status(1);
    let outcome = test.run();
    assert!(outcome.stderr.contains("invalid peer certificate"), "{}", outcome.stderr);
    assert_eq!(server.asked("/").len(), 1, "nothing is sent to a stranger");
}

#[test]
fn an_action_that_asks_a_server_runs_by_itself() {
    let server = Server::start(|_, _| answer(200, "", "hello"));
    let action = "action: ask\ninputs: { api: { type: string } }\nhttp: { url: '{{ inputs.api }}/' }\n";
    let test = test(&http(&server), action);
    let api = format!("api={}", http(&server));
    let test = test.args(["run", "ask.yaml", "--action", "ask", "-i", &api, "-o", "json", "--io-slots", "1"]);
    let outcome = test.run();
    assert!(outcome.stdout.contains("\"body\":\"hello\""), "{}", outcome.stdout);
}
