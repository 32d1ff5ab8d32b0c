//! What somebody wants done, with a note of who changed what.

use crate::core::Core;
use crate::ids::{Name, TaskId};
use crate::protocol::{Answer, AuditRow, Command, LimitValue, Pausable, Refusal, SetLimit, Write, cut};
use crate::time::Moment;

/// What is done, to what, and what else there is to say.
struct Note {
    what: &'static str,
    about: String,
    more: Option<String>,
}

impl Core {
    /// A refusal changes nothing, and nothing is written down about it.
    pub(crate) fn by(&mut self, who: Name, command: Command, now: Moment) -> Result<Answer, Refusal> {
        // What is cancelled may be gone afterwards.
        let note = self.note(&command);
        let answer = self.carry_out(command, now)?;
        if let Some(Note { what, about, more }) = note {
            let (number, what, about) = (self.next_number(), what.to_owned(), cut(about));
            let row = AuditRow { number, at: now, by: who, what, about, more: more.map(cut) };
            self.write(Write::Audited(Box::new(row)));
        }
        Ok(answer)
    }

    /// Submissions speak for themselves, and workers change nothing that anybody decided.
    fn note(&self, command: &Command) -> Option<Note> {
        let note = |what, about, more| Some(Note { what, about, more });
        match command {
            Command::Declare(declare) => {
                let flows = declare.flows.iter().map(|flow| format!("flow {}", flow.name));
                let actions = declare.actions.iter().map(|action| format!("action {}", action.policy.action));
                let limits = declare.limits.iter().map(|_| "limits".to_owned());
                let all: Vec<String> = flows.chain(actions).chain(limits).collect();
                let files: Vec<&str> = declare.files.iter().map(Name::as_str).collect();
                note("definitions.apply", files.join(", "), Some(all.join(", ")))
            }
            Command::Cancel(task) => note("run.cancel", self.name(*task), None),
            Command::SetPriority { node, priority } => {
                note("run.priority", self.name(TaskId::node(*node)), Some(priority.to_string()))
            }
            Command::SetLimit(set) => {
                let what = if set.value.is_some() { "limit.set" } else { "limit.reset" };
                note(what, set.key.to_string(), value(set))
            }
            Command::Pause(what) => note(paused(what)[0], self.pausable(what), None),
            Command::Resume(what) => note(paused(what)[1], self.pausable(what), None),
            Command::Offer { worker, .. } => note("worker.drain", worker.to_string(), None),
            Command::SetToken(token) => {
                let scopes: Vec<&str> = token.scopes.iter().map(Name::as_str).collect();
                let until = token.until.map(|until| format!(" until {}", until.timestamp()));
                let more = format!("{}: {}{}", token.name, scopes.join(", "), until.unwrap_or_default());
                note("token.create", token.id.to_string(), Some(more))
            }
            Command::RevokeToken { id } => note("token.revoke", id.to_string(), None),
            Command::Submit(_)
            | Command::Post { .. }
            | Command::Retry(_)
            | Command::Finish(_)
            | Command::Heartbeat(_)
            | Command::Join(_)
            | Command::Leave(_)
            | Command::Evaluated { .. }
            | Command::Wake
            | Command::By { .. } => None,
        }
    }

    fn pausable(&self, what: &Pausable) -> String {
        match what {
            Pausable::Limit(key) => key.to_string(),
            Pausable::Action(action) => format!("action:{action}"),
            Pausable::Node(node) => self.name(TaskId::node(*node)),
        }
    }
}

/// What it is called to pause it, and to resume it.
fn paused(what: &Pausable) -> [&'static str; 2] {
    match what {
        Pausable::Limit(_) | Pausable::Action(_) => ["limit.pause", "limit.resume"],
        Pausable::Node(_) => ["run.pause", "run.resume"],
    }
}

fn value(set: &SetLimit) -> Option<String> {
    let value = match set.value.as_ref()? {
        LimitValue::Units(units) => units.to_string(),
        LimitValue::Rate(rate) => format!("{} per {}", rate.limit, rate.per),
        LimitValue::Quota(quota) => format!("{} per {}", quota.limit, quota.window.as_str()),
    };
    let until = set.until.map(|until| format!(" until {}", until.timestamp()));
    Some(value + &until.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::LimitKey;
    use crate::testkit::Kit;

    fn by(command: Command) -> Command {
        Command::By { who: "ann".into(), command: Box::new(command) }
    }

    /// What the last command left.
    fn noted(kit: &Kit) -> Vec<AuditRow> {
        let rows = kit.writes.iter().filter_map(|write| match write {
            Write::Audited(row) => Some((**row).clone()),
            _ => None,
        });
        rows.collect()
    }

    #[test]
    fn changes_are_written_down_with_who_made_them() {
        let mut kit = Kit::new(0);
        let job = kit.job("work");
        let name = kit.core.name(TaskId::node(job));
        let (key, pool) = (LimitKey::Action("work".into()), LimitKey::Pool("db".into()));
        let set = |value| SetLimit { key: key.clone(), value, by: "ann".into(), until: None };
        let commands = [
            Command::SetLimit(set(Some(LimitValue::Units(3)))),
            Command::SetLimit(set(None)),
            Command::Pause(Pausable::Limit(pool)),
            Command::SetPriority { node: job, priority: 7 },
            Command::Cancel(TaskId::node(job)),
        ];
        let mut rows = Vec::new();
        for command in commands {
            kit.apply(by(command));
            rows.extend(noted(&kit));
        }
        let told =
            |row: &AuditRow| format!("{} {} {}", row.what, row.about, row.more.as_deref().unwrap_or("-"));
        let expected = [
            "limit.set action:work 3".to_owned(),
            "limit.reset action:work -".to_owned(),
            "limit.pause pool:db -".to_owned(),
            format!("run.priority {name} 7"),
            format!("run.cancel {name} -"),
        ];
        assert_eq!(rows.iter().map(told).collect::<Vec<_>>(), expected);
        assert!(rows.is_sorted_by(|a, b| a.number < b.number));
        assert!(rows.iter().all(|row| row.by.as_str() == "ann" && row.at == kit.now));
    }

    #[test]
    fn what_was_refused_and_what_is_no_change_is_not_written_down() {
        let mut kit = Kit::new(0);
        let gone = TaskId::node(crate::ids::NodeId(99));
        assert_eq!(kit.refused(by(Command::Cancel(gone))), Refusal::UnknownTask(gone));
        assert_eq!(noted(&kit), []);
        kit.apply(by(Command::Wake));
        assert_eq!(noted(&kit), []);
        let submit = kit.submit(crate::testkit::job("work"));
        kit.apply(by(Command::Submit(submit)));
        assert_eq!(noted(&kit), []);
    }
}
