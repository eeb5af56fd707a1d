//! DISPLAY: the top of a video path (Scout §4.1). It keeps the decoded pictures in the output
//! queue and shows each when it is due by the display's clock; it decides how urgent the path is
//! ([`crate::deadline`]). It must never show a picture late.
//!
//! # Configuration
//! None.
//!
//! # Services
//! `down` (pictures, client, needed): a decoder, MPEG. With several, `PathName` decides.
//!
//! # Attributes
//! Reads the viewer's [`Wish`].
//!
//! # Example
//! ```toml
//! [[module]]
//! name = "display"
//! kind = "display"
//!
//! [[link]]
//! from = "display.down"
//! to = "mpeg.up"
//! ```
//!
//! # See also
//! [`mpeg`](crate::mpeg) below.

use crate::attributes::Wish;
use crate::output::{Output, Shown};
use crate::picture::Picture;
use crate::screen::Screen;
use crate::trace::Trace;
use alloc::boxed::Box;
use silk_instant::Instant;
use silk_path::service::{Service, ServiceType};
use silk_path::{
    Attrs, Bell, Create, CreateError, Cx, DropReason, Event, Message, Module, Next, PathId, Stage, Step,
    Verdict,
};

/// Decoded pictures, the decoder's side.
pub const PICTURES: ServiceType = ServiceType::provider("pictures");
/// Decoded pictures, the display's side.
pub const PICTURES_USER: ServiceType = ServiceType::client("pictures");
/// Its services.
pub const SERVICES: &[Service] = &[Service::needed("down", PICTURES_USER)];

/// Opens a screen for each path.
pub trait Screens: Send {
    /// The screen for the path `path` with these attributes; `None` when there is none left.
    fn open(&mut self, path: PathId, attrs: &Attrs) -> Option<Box<dyn Screen>>;
}

/// The module.
pub struct Display {
    screens: Box<dyn Screens>,
}

impl Display {
    /// The module whose paths show their pictures on `screens`.
    pub fn new(screens: Box<dyn Screens>) -> Self {
        Self { screens }
    }
}

impl Module for Display {
    fn kind(&self) -> &'static str {
        "display"
    }

    fn services(&self) -> &'static [Service] {
        SERVICES
    }

    fn create_stage(&mut self, create: &mut Create<'_>) -> Result<Step, CreateError> {
        let screen = self.screens.open(create.id, create.attrs).ok_or(CreateError::Missing("a screen"))?;
        let output = Output::new(Wish::of(create.attrs).output());
        let stage = DisplayStage { output, screen, unfreed: 0 };
        Ok(Step { stage: Some(Box::new(stage)), next: Next::Service(0) })
    }
}

/// DISPLAY's part of a path: the output queue and the screen.
pub struct DisplayStage {
    /// The output queue.
    pub output: Output,
    screen: Box<dyn Screen>,
    // Memory of pictures that went without being queued, to be given back by whoever runs.
    unfreed: u64,
}

impl DisplayStage {
    /// Takes a decoded picture, whose memory is charged, to be shown by `stamp`.
    pub(crate) fn take(&mut self, picture: Box<dyn Picture>, stamp: u32, trace: Trace) {
        let (memory, waiting) = (picture.memory(), self.output.len());
        if let Some(now) = self.output.push(picture, stamp, trace) {
            self.screen.show(&*now);
        }
        if self.output.len() == waiting {
            self.unfreed += memory;
        }
    }

    /// What became of its pictures.
    pub fn counts(&self) -> Shown {
        self.output.counts()
    }

    fn show_due(&mut self, cx: &mut Cx<'_, '_>) {
        let mut freed = core::mem::take(&mut self.unfreed);
        let now = cx.now();
        self.output.set_retrace(self.screen.retrace());
        if let Some(picture) = self.output.tick(now, |memory| freed += memory) {
            self.screen.show(&*picture);
        }
        cx.release(freed as usize);
        cx.arm(self.output.due().unwrap_or(Instant::FAR));
        if self.output.is_over() {
            cx.raise(Event::Closed);
        }
    }
}

impl Stage for DisplayStage {
    fn up(&mut self, _: &mut Cx<'_, '_>, _: &mut Message<'_>) -> Verdict {
        Verdict::Drop(DropReason::Unexpected)
    }

    fn down(&mut self, _: &mut Cx<'_, '_>, _: &mut Message<'_>) -> Verdict {
        Verdict::Drop(DropReason::Unexpected)
    }

    /// The display's clock.
    fn timer(&mut self, cx: &mut Cx<'_, '_>) {
        self.show_due(cx);
    }

    /// MPEG has put pictures into the queue, or the stream has ended.
    fn event(&mut self, cx: &mut Cx<'_, '_>, event: Event) -> bool {
        match event {
            Event::Readable => self.show_due(cx),
            Event::PeerFinished => {
                self.output.end();
                self.show_due(cx);
            }
            _ => return true,
        }
        false
    }

    /// The viewer has changed something: what is due may be due at another time.
    fn bell(&mut self, cx: &mut Cx<'_, '_>, bell: Bell) -> bool {
        if bell == Bell::Read {
            self.show_due(cx);
        }
        bell != Bell::Read
    }

    fn destroy(&mut self, cx: &mut Cx<'_, '_>) {
        let mut freed = core::mem::take(&mut self.unfreed);
        self.output.clear(|memory| freed += memory);
        cx.release(freed as usize);
    }

    fn state(&self) -> &'static str {
        match (self.output.is_over(), self.output.due()) {
            (true, _) => "OVER",
            (_, Some(_)) => "PLAYING",
            (_, None) => "WAITING",
        }
    }
}
