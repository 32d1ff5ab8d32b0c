//! The commands that a script can give.

use super::limits;
use super::words::{Words, unquoted};
use super::workers::{NEVER, with_epoch};
use super::world::World;
use serde_json::Value as Json;
use tidegate_core::admission::{Skills, SlotCounts};
use tidegate_core::explain::render;
use tidegate_core::ids::{Name, TaskId};
use tidegate_core::protocol::{
    Answer, Command, Finish, Heartbeat, Join, Lease, Leave, Outcome, Pausable, Payload, Retry, SetLimit,
    Submission, Submit,
};
use tidegate_flow::parse_duration;
use tidegate_flow::submit::{inputs_from_text, submission};

impl World {
    pub fn command(&mut self, mut words: Words, body: &[String]) -> Result<(), String> {
        match words.need("a command")?.as_str() {
            "job" => self.job(words),
            "run" => self.run(words),
            "retry" => self.retry(words),
            "cancel" => self.cancel(words),
            "priority" => self.priority(words),
            "finish" => self.finish(words),
            "fail" => self.fail(words),
            "stopped" => self.report(words, Outcome::Stopped),
            "handback" => self.report(words, Outcome::HandedBack),
            "worker" => self.worker(words, true),
            "rejoin" => self.worker(words, false),
            "offer" => self.offer(words),
            "leave" => self.leave(words),
            "heartbeat" => self.heartbeat(words),
            "silence" => self.workers.set_beating(&Name::from(words.need("a worker")?), false),
            "set" => self.set(words, true),
            "reset" => self.set(words, false),
            "pause" => self.pause(words, true),
            "resume" => self.pause(words, false),
            "declare" => self.declare_more(body),
            "advance" => {
                let span = words.span()?;
                self.settle();
                self.advance(span);
                words.end()
            }
            "sleep" => {
                let span = words.span()?;
                self.sleep(span);
                words.end()
            }
            "wake" => self.say_answer("wake", Command::Wake),
            "crash" => {
                self.load();
                words.end()
            }
            "hold" => {
                self.answers = 0;
                Ok(())
            }
            "answer" => {
                self.answers = words.next().and_then(|many| many.parse().ok()).unwrap_or(usize::MAX);
                Ok(())
            }
            "why" => self.why(words),
            "idle" => {
                let is_idle = self.core.is_idle();
                self.speech.say(if is_idle { "yes" } else { "no" }.to_owned());
                words.end()
            }
            other => Err(format!("nobody knows how to `{other}`")),
        }
    }

    /// Applies a command; only a refusal is worth saying.
    fn say_answer(&mut self, about: &str, command: Command) -> Result<(), String> {
        match self.apply(command) {
            Answer::Refused(refusal) => {
                let text = self.refusal(&refusal);
                self.speech.say(format!("refused {about}: {text}"));
            }
            Answer::Accepted { node, again: true } => {
                let known = self.speech.names.node(node).to_owned();
                self.speech.say(format!("{about} is {known}, accepted before"));
            }
            _ => {}
        }
        Ok(())
    }

    // ---- roots

    fn job(&mut self, mut words: Words) -> Result<(), String> {
        let (name, action) = (words.need("a name")?, Name::from(words.need("an action")?));
        let key = words.take("key").map(Name::from);
        let order = Payload::new(words.take("order").unwrap_or_else(|| format!("{{\"job\":\"{name}\"}}")));
        let submit = self.submit(&name, &mut words, Submission::Job { action, key, order })?;
        words.end()?;
        self.say_answer(&name, Command::Submit(submit))
    }

    fn run(&mut self, mut words: Words) -> Result<(), String> {
        let (name, flow) = (words.need("a name")?, Name::from(words.need("a flow")?));
        let what = Submission::Run { flow: flow.clone(), key: None, inputs: Payload::new("{}") };
        let mut submit = self.submit(&name, &mut words, what)?;
        if let Some(model) = self.core.flow(&flow, u32::MAX) {
            let pairs = words.pairs()?;
            let pairs = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            let inputs = inputs_from_text(&model.inputs, pairs).map_err(|error| error.to_string())?;
            let rendered = submission(&model, inputs).map_err(|error| error.to_string())?;
            submit.tags.extend(rendered.tags);
            let inputs = Payload::new(rendered.inputs.to_string());
            submit.what = Submission::Run { flow, key: rendered.key, inputs };
        }
        // Its content is known only now.
        if let Some(known) = submit.idempotency.take() {
            submit = submit.under(known.key);
        }
        self.say_answer(&name, Command::Submit(submit))
    }

    /// `retry again r`, or `retry again r from start`.
    fn retry(&mut self, mut words: Words) -> Result<(), String> {
        let (name, of) = (words.need("a name")?, words.need("what is retried")?);
        let of = self.speech.names.id(&of)?;
        let from_start = words.is_next("from") && words.is_next("start");
        words.end()?;
        let (id, past) = (self.speech.names.root(&name), self.recall(of).map(Box::new));
        self.say_answer(&name, Command::Retry(Retry { id, of, from_start, queue: None, past }))
    }

    /// The options that jobs and runs share: `priority=5 in=10s once=key tag=env:prod id=other`.
    fn submit(&mut self, name: &str, words: &mut Words, what: Submission) -> Result<Submit, String> {
        let priority = words.take("priority").map_or(Ok(0), |text| text.parse());
        let due =
            words.take("in").map(|text| parse_duration(&text).ok_or("`in` is a duration")).transpose()?;
        let tag = words.take("tag");
        let tag =
            tag.as_ref().and_then(|tag| tag.split_once(':')).map(|(tag, value)| (tag.into(), value.into()));
        let same = words.take("id").map(|other| self.speech.names.task(&other)).transpose()?;
        let taken = same.and_then(|task| self.core.root_id(task.node));
        let submit = Submit {
            id: taken.unwrap_or_else(|| self.speech.names.root(name)),
            what,
            tags: tag.into_iter().collect(),
            priority: priority.map_err(|_| "a priority is a number")?,
            due: due.map(|span| self.now + span),
            idempotency: None,
        };
        Ok(match words.take("once") {
            Some(key) => submit.under(key),
            None => submit,
        })
    }

    fn cancel(&mut self, mut words: Words) -> Result<(), String> {
        let name = words.need("a task")?;
        let task = self.speech.names.task(&name)?;
        words.end()?;
        self.say_answer(&name, Command::Cancel(task))
    }

    fn priority(&mut self, mut words: Words) -> Result<(), String> {
        let name = words.need("a task")?;
        let node = self.speech.names.task(&name)?.node;
        let priority = words.number("priority")?;
        self.say_answer(&name, Command::SetPriority { node, priority })
    }

    // ---- attempts

    fn finish(&mut self, mut words: Words) -> Result<(), String> {
        let word = words.need("a task")?;
        let slots = words.take("offer").map(|slots| slots.parse()).transpose();
        let slots: Option<u32> = slots.map_err(|_| "an offer is a number")?;
        let output = words.next().unwrap_or_else(|| "null".to_owned());
        serde_json::from_str::<Json>(&output).map_err(|error| format!("the output: {error}"))?;
        words.end()?;
        self.ended(&word, Outcome::Succeeded(Payload::new(output)), slots)
    }

    fn fail(&mut self, mut words: Words) -> Result<(), String> {
        let word = words.need("a task")?;
        let error = words.next().map_or_else(|| "failed".to_owned(), |error| unquoted(&error));
        words.end()?;
        self.ended(&word, Outcome::failed(error), None)
    }

    fn report(&mut self, mut words: Words, outcome: Outcome) -> Result<(), String> {
        let word = words.need("a task")?;
        words.end()?;
        self.ended(&word, outcome, None)
    }

    fn ended(&mut self, word: &str, outcome: Outcome, slots: Option<u32>) -> Result<(), String> {
        let (worker, lease) = self.lease(word)?;
        self.workers.is_done_with(lease);
        let offer = slots.map(|slots| SlotCounts { process: slots, io: slots });
        self.say_answer(word, Command::Finish(Finish { worker, lease, outcome, offer }))
    }

    fn lease(&self, word: &str) -> Result<(Name, Lease), String> {
        let (name, epoch) = with_epoch(word);
        let task = self.speech.names.task(name)?;
        if epoch == Some("0.0") {
            return Ok(("nobody".into(), Lease { task, epoch: NEVER }));
        }
        self.workers.lease(task, epoch).map_err(|error| format!("{word}: {error}"))
    }

    // ---- workers

    /// `worker w 4 gpu queue=q does=a,b`: four slots of each kind; labels; one queue; functions.
    fn worker(&mut self, mut words: Words, anew: bool) -> Result<(), String> {
        let worker = Name::from(words.need("a name")?);
        let slots = words.number("number of slots")?;
        let queue = words.take("queue").map_or_else(|| Name::new("default"), Name::from);
        let functions = match words.take("does") {
            Some(does) => does.split(',').filter(|name| !name.is_empty()).map(Name::from).collect(),
            None => self.functions.iter().cloned().collect(),
        };
        let labels = words.rest().into_iter().map(Name::from).collect();
        let skills = Skills { queues: vec![queue], labels, functions, processes: true, io: true };
        let incarnation = if anew { self.workers.start(&worker) } else { self.workers.incarnation(&worker) };
        self.workers.set_beating(&worker, true)?;
        let slots = SlotCounts { process: slots, io: slots };
        let about = worker.to_string();
        self.say_answer(&about, Command::Join(Join { worker, incarnation, skills, slots }))
    }

    fn offer(&mut self, mut words: Words) -> Result<(), String> {
        let worker = Name::from(words.need("a worker")?);
        let slots = words.number("number of slots")?;
        let about = worker.to_string();
        let incarnation = self.workers.incarnation(&worker);
        let slots = SlotCounts { process: slots, io: slots };
        self.say_answer(&about, Command::Offer { worker, incarnation, slots })
    }

    fn leave(&mut self, mut words: Words) -> Result<(), String> {
        let worker = Name::from(words.need("a worker")?);
        let incarnation = self.workers.incarnation(&worker);
        if incarnation > 0 {
            self.workers.set_beating(&worker, false)?;
        }
        let about = worker.to_string();
        self.say_answer(&about, Command::Leave(Leave { worker, incarnation }))
    }

    /// A list of exactly these. From here on the worker is heard of only when the script says so.
    fn heartbeat(&mut self, mut words: Words) -> Result<(), String> {
        let worker = Name::from(words.need("a worker")?);
        let incarnation = self.workers.incarnation(&worker);
        let has = words.rest().iter().map(|word| Ok(self.lease(word)?.1)).collect::<Result<_, String>>()?;
        if incarnation > 0 {
            self.workers.set_beating(&worker, false)?;
        }
        match self.apply(Command::Heartbeat(Heartbeat { worker: worker.clone(), incarnation, has })) {
            Answer::Renewal(renewal) => {
                let names = |leases: &[Lease]| {
                    let names = leases.iter().map(|lease| self.speech.names.name(lease.task));
                    names.collect::<Vec<_>>().join(", ")
                };
                let (renewed, stop) = (names(&renewal.renewed), names(&renewal.stop));
                for (what, names) in [("renewed", renewed), ("to be stopped", stop)] {
                    if !names.is_empty() {
                        self.speech.say(format!("{what}: {names}"));
                    }
                }
            }
            Answer::Refused(refusal) => self.speech.say(format!("refused {worker}: {refusal}")),
            _ => {}
        }
        Ok(())
    }

    // ---- limits

    fn set(&mut self, mut words: Words, value: bool) -> Result<(), String> {
        let name = words.need("a limit")?;
        let key = limits::key(&name, &self.speech.names)?;
        let value = if value { Some(limits::value(&key, &mut words)?) } else { None };
        let until = if words.is_next("for") { Some(self.now + words.span()?) } else { None };
        words.end()?;
        self.say_answer(&name, Command::SetLimit(SetLimit { key, value, by: "me".into(), until }))
    }

    fn pause(&mut self, mut words: Words, paused: bool) -> Result<(), String> {
        let name = words.need("something to pause")?;
        words.end()?;
        let what = match (name.strip_prefix("action:"), name.contains(':') || name == "runs") {
            (Some(action), _) if !action.contains('/') => Pausable::Action(action.into()),
            (_, true) => Pausable::Limit(limits::key(&name, &self.speech.names)?),
            _ => Pausable::Node(self.speech.names.task(&name)?.node),
        };
        let command = if paused { Command::Pause(what) } else { Command::Resume(what) };
        self.say_answer(&name, command)
    }

    fn declare_more(&mut self, body: &[String]) -> Result<(), String> {
        if let Answer::Refused(refusal) = self.declare(&body.join("\n"))? {
            self.speech.say(format!("refused: {refusal}"));
        }
        Ok(())
    }

    // ---- questions

    fn why(&mut self, mut words: Words) -> Result<(), String> {
        let name = words.need("a task")?;
        let task: TaskId = self.speech.names.task(&name)?;
        words.end()?;
        let text = match self.core.explain(task, self.now) {
            Some(explanation) => self.speech.names.in_text(&render(&explanation)),
            None => format!("{name} is not open"),
        };
        self.speech.lines.extend(text.lines().map(str::to_owned));
        Ok(())
    }
}
