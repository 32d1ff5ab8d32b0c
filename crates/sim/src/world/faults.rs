//! What goes wrong, and when.

use super::clients::Intent;
use super::{Event, ServerId, WorkerId, World};
use tidegate_core::time::Span;

#[derive(Clone, Debug)]
pub(crate) enum Fault {
    ServerCrash(ServerId),
    ServerReturns(ServerId),
    ServerPause(ServerId),
    ServerGoesOn(ServerId),
    WorkerKill(WorkerId),
    WorkerReturns(WorkerId),
    WorkerPause(WorkerId),
    WorkerGoesOn(WorkerId),
    WorkerShutDown(WorkerId),
    WorkerCutOff(WorkerId),
    ProcessEnds,
}

impl World {
    pub(super) fn plan_faults(&mut self) {
        let trouble = self.plan.trouble;
        for _ in 0..trouble.server_crashes {
            let server = self.random.index(self.servers.len());
            self.sometime(Event::Fault(Fault::ServerCrash(server)));
        }
        for _ in 0..trouble.server_pauses {
            let server = self.random.index(self.servers.len());
            self.sometime(Event::Fault(Fault::ServerPause(server)));
        }
        for _ in 0..trouble.worker_kills {
            let worker = self.random.index(self.workers.len());
            self.sometime(Event::Fault(Fault::WorkerKill(worker)));
        }
        for _ in 0..trouble.worker_pauses {
            let worker = self.random.index(self.workers.len());
            self.sometime(Event::Fault(Fault::WorkerPause(worker)));
        }
        for _ in 0..trouble.worker_cuts {
            let worker = self.random.index(self.workers.len());
            self.sometime(Event::Fault(Fault::WorkerCutOff(worker)));
        }
        for _ in 0..trouble.worker_shutdowns {
            let worker = self.random.index(self.workers.len());
            self.sometime(Event::Fault(Fault::WorkerShutDown(worker)));
        }
        for _ in 0..trouble.ends {
            self.sometime(Event::Fault(Fault::ProcessEnds));
        }
        for _ in 0..trouble.limit_changes {
            self.sometime(Event::Client(Intent::ChangeLimit));
        }
        for _ in 0..trouble.cancels {
            self.sometime(Event::Client(Intent::CancelSomething));
        }
        for _ in 0..trouble.priorities {
            self.sometime(Event::Client(Intent::ChangePriority));
        }
        for _ in 0..trouble.pauses {
            self.sometime(Event::Client(Intent::PauseSomething));
        }
        for _ in 0..trouble.rescopes {
            self.sometime(Event::Client(Intent::Rescope));
        }
        for _ in 0..trouble.cancel_storms {
            self.sometime(Event::Client(Intent::CancelMany));
        }
    }

    /// At some time while there is trouble.
    pub(super) fn sometime(&mut self, event: Event) {
        let span = Span::micros(self.random.between(500_000, self.plan.active.0));
        self.after(span, event);
    }

    pub(super) fn fault(&mut self, fault: Fault) {
        match fault {
            Fault::ServerReturns(_) | Fault::ServerGoesOn(_) if self.plan.embedded => {
                return self.revive_process();
            }
            Fault::ServerReturns(id) => return self.revive_server(id),
            Fault::ServerGoesOn(id) => return self.resume_server(id),
            Fault::WorkerReturns(id) => return self.revive_worker(id),
            Fault::WorkerGoesOn(id) => return self.resume_worker(id),
            _ if !self.troubled => return,
            _ => {}
        }
        let away = Span::millis(self.random.between(500, 12_000));
        match fault {
            Fault::ServerCrash(_) if self.plan.embedded => self.kill_process("process killed"),
            Fault::ServerPause(_) if self.plan.embedded => self.pause_process(),
            Fault::ProcessEnds => self.shut_down_process(),
            Fault::ServerCrash(id) => {
                self.crash_server(id);
                self.after(away, Event::Fault(Fault::ServerReturns(id)));
            }
            Fault::ServerPause(id) => {
                self.pause_server(id, away);
                self.after(away, Event::Fault(Fault::ServerGoesOn(id)));
            }
            Fault::WorkerKill(id) => self.kill_worker(id, "worker killed"),
            Fault::WorkerPause(id) => {
                let away = Span::millis(self.random.between(2_000, 50_000));
                self.pause_worker(id, away);
                self.after(away, Event::Fault(Fault::WorkerGoesOn(id)));
            }
            Fault::WorkerShutDown(id) => self.shut_down_worker(id),
            Fault::WorkerCutOff(id) => {
                let away = Span::millis(self.random.between(2_000, 40_000));
                self.cut_off_worker(id, away);
            }
            _ => {}
        }
    }
}
