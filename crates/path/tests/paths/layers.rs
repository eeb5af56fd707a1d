//! The modules that the tests make paths through: each stage does one thing, and notes what it was asked.

use core::time::Duration;
use silk_path::service::{NET, Service};
use silk_path::*;
use std::sync::{Arc, Mutex};

use Habit::*;

/// What was done, in order.
pub type Log = Arc<Mutex<Vec<String>>>;

/// What a module's stages do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Habit {
    Pass,
    /// Turns messages around.
    Turn,
    /// Sends what comes up on up itself, and then consumes it.
    Carry,
    Drop,
    /// Refuses to be established.
    Refuse,
    /// Holds a hundred bytes.
    Hold,
    /// Makes no stage.
    Absent,
    /// Takes bells, events and reports and passes none on.
    Deaf,
    /// Charges more on every message.
    Greedy,
    /// Leads to itself.
    Round,
}

struct Layer {
    name: &'static str,
    habit: Habit,
    log: Log,
}

const SERVICES: &[Service] = &[Service::offered("up", NET), Service::wanted("down", NET)];

impl Module for Layer {
    fn kind(&self) -> &'static str {
        self.name
    }
    fn services(&self) -> &'static [Service] {
        SERVICES
    }
    fn create_stage(&mut self, create: &mut Create<'_>) -> Result<Step, CreateError> {
        self.log.lock().unwrap().push(format!("create {}", self.name));
        if self.name == "c" && create.attrs.user(1) == Some(99) {
            return Err(CreateError::Missing("sense"));
        }
        let stage =
            Box::new(LayerStage { name: self.name, habit: self.habit, log: self.log.clone(), held: 0 });
        let stage = (self.habit != Absent).then_some(stage as Box<dyn Stage>);
        Ok(Step { stage, next: if self.habit == Round { Next::Link(0, 0) } else { Next::Service(1) } })
    }
}

/// A module's part of a path.
pub struct LayerStage {
    name: &'static str,
    /// What it does from now on.
    pub habit: Habit,
    log: Log,
    held: usize,
}

impl LayerStage {
    fn note(&self, what: &str) {
        self.log.lock().unwrap().push(format!("{what} {}", self.name));
    }
}

impl Stage for LayerStage {
    fn establish(&mut self, cx: &mut Cx<'_, '_>) -> Result<(), CreateError> {
        self.note("establish");
        if self.habit == Refuse {
            return Err(CreateError::Gone);
        }
        if self.habit == Hold {
            self.held = 100;
            cx.charge(self.held).map_err(|_| CreateError::Refused(Refused::PathMemory))?;
        }
        Ok(())
    }

    fn start(&mut self, _: &mut Cx<'_, '_>) {
        self.note("start");
    }

    fn up(&mut self, cx: &mut Cx<'_, '_>, msg: &mut Message<'_>) -> Verdict {
        self.note("up");
        match self.habit {
            Turn => {
                let _ = cx.down(msg);
                Verdict::Consumed
            }
            Carry => {
                let sent = cx.up(msg);
                self.note(&format!("carried {sent:?}"));
                Verdict::Consumed
            }
            Drop => Verdict::Drop(DropReason::Unexpected),
            Greedy => match cx.charge(1000) {
                Ok(()) => {
                    self.held += 1000;
                    Verdict::Forward
                }
                Err(reason) => reason.into(),
            },
            _ => Verdict::Forward,
        }
    }

    fn down(&mut self, _: &mut Cx<'_, '_>, msg: &mut Message<'_>) -> Verdict {
        self.note("down");
        match msg.push(1) {
            Ok(header) => header[0] = self.name.as_bytes()[0],
            Err(reason) => return reason.into(),
        }
        Verdict::Forward
    }

    fn timer(&mut self, cx: &mut Cx<'_, '_>) {
        self.note("timer");
        cx.raise(Event::TimedOut);
    }

    fn bell(&mut self, cx: &mut Cx<'_, '_>, bell: Bell) -> bool {
        self.note("bell");
        if let Bell::Urgent(millis) = bell {
            cx.arm(cx.now() + Duration::from_millis(millis.into()));
        }
        self.habit != Deaf
    }

    fn event(&mut self, _: &mut Cx<'_, '_>, _: Event) -> bool {
        self.note("event");
        self.habit != Deaf
    }

    fn report(&mut self, _: &mut Cx<'_, '_>, _: Report) -> bool {
        self.note("report");
        self.habit != Deaf
    }

    fn destroy(&mut self, cx: &mut Cx<'_, '_>) {
        self.note("destroy");
        if self.habit == Hold || self.habit == Greedy {
            cx.release(std::mem::take(&mut self.held));
        }
    }

    fn state(&self) -> &'static str {
        if self.habit == Hold { "HOLDING" } else { "" }
    }
}

/// The kinds of the test: what each is called and does, and where it is noted.
pub struct Layers(pub Vec<(&'static str, Habit)>, pub Log);

const KINDS: &[Kind] = &[
    Kind { name: "a", services: SERVICES, parameters: &[] },
    Kind { name: "b", services: SERVICES, parameters: &[] },
    Kind { name: "c", services: SERVICES, parameters: &[] },
    Kind { name: "d", services: SERVICES, parameters: &[] },
];

impl Catalogue for Layers {
    fn kinds(&self) -> &[Kind] {
        KINDS
    }
    fn make(&self, spec: &ModuleSpec) -> Result<Box<dyn Module>, BadParameter> {
        let (name, habit) = *self.0.iter().find(|(name, _)| *name == spec.kind).expect("made for the test");
        Ok(Box::new(Layer { name, habit, log: self.1.clone() }))
    }
}
