//! A window, by SDL2. All windows are drawn by one thread of their own: the graphics system may keep that one
//! waiting, for the vertical retrace or otherwise, and nobody else; and SDL's things stay on the thread that made
//! them.

use super::drawing::Drawing;
use super::shared::{Bell, Next, Shared};
use super::{ScreenError, Shown, Sink};
use crate::place;
use sdl2::event::{Event, WindowEvent};
use sdl2::keyboard::Keycode;
use sdl2::{EventPump, VideoSubsystem};
use silk_appliance::{Clock, Monotonic};
use silk_media::{Picture, Retrace, Screen};
use std::env;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

/// The drivers of SDL that show nothing.
const UNSEEN: [&str; 3] = ["dummy", "offscreen", "evdev"];

/// How often windows without new pictures look whether they were closed or moved.
const LOOK: Duration = Duration::from_millis(20);
/// How long a window may take to close.
const CLOSING: Duration = Duration::from_secs(1);

/// A window.
#[derive(Debug)]
pub struct Window(Arc<Shared>);

impl Window {
    /// Begins what takes long, for windows that will be opened while others play.
    ///
    /// # Errors
    /// Where there is no screen, or SDL cannot use it.
    pub fn prepare() -> Result<(), ScreenError> {
        windows().map(drop)
    }

    /// Opens a window called `title`, in the middle, or beside others where it is the `number`-th (the first is 0).
    /// It takes the size of the first picture. Nobody waits for it: others may be playing.
    ///
    /// # Errors
    /// As [`Self::prepare`]. That this window cannot be had is told at its end.
    pub fn open(title: &str, number: Option<usize>) -> Result<Self, ScreenError> {
        let Windows { orders, bell } = windows()?;
        let shared = Arc::new(Shared::new(bell.clone()));
        let order = Order { title: title.to_owned(), number, shared: shared.clone() };
        orders.send(order).map_err(|_| ScreenError::NoWindow(DIED.into()))?;
        bell.ring();
        Ok(Self(shared))
    }
}

impl Screen for Window {
    fn show(&mut self, picture: &dyn Picture) {
        self.0.leave(picture);
    }

    fn retrace(&self) -> Option<Retrace> {
        self.0.retrace()
    }
}

impl Sink for Window {
    fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    fn end(self: Box<Self>) -> Result<Shown, ScreenError> {
        match self.0.failed() {
            Some(why) => Err(ScreenError::NoWindow(why)),
            None => Ok(self.0.shown()),
        }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        self.0.close();
        self.0.wait_gone(CLOSING);
    }
}

/// The thread of all windows; it lives as long as the program.
static WINDOWS: OnceLock<Result<Windows, String>> = OnceLock::new();

const DIED: &str = "the thread of the windows died";

fn windows() -> Result<&'static Windows, ScreenError> {
    WINDOWS.get_or_init(Windows::start).as_ref().map_err(|why| ScreenError::NoWindow(why.clone()))
}

/// How that thread is told of something new.
struct Windows {
    orders: Sender<Order>,
    bell: Arc<Bell>,
}

/// A window that is to be opened.
struct Order {
    title: String,
    number: Option<usize>,
    shared: Arc<Shared>,
}

impl Windows {
    /// Starts the thread, and waits until it has a screen.
    fn start() -> Result<Self, String> {
        let (orders, taken) = mpsc::channel();
        let (begun, answer) = mpsc::channel();
        let bell = Arc::new(Bell::default());
        let theirs = bell.clone();
        let run = move || {
            // Where the player has a CPU and a priority of its own, they are for decoding. What is refused is
            // done without.
            let _ = place::be_ordinary();
            let stage = begin();
            // Whoever started this waits for the answer.
            let _ = begun.send(stage.as_ref().map(drop).map_err(Clone::clone));
            if let Ok((video, events)) = stage {
                Drawer { orders: taken, bell: theirs, video, events, open: Vec::new() }.run();
            }
        };
        let thread = thread::Builder::new().name("windows".to_owned()).spawn(run);
        thread.map_err(|error| error.to_string())?;
        answer.recv().map_err(|_| DIED.to_owned())??;
        Ok(Self { orders, bell })
    }
}

/// What the thread has.
struct Drawer {
    orders: Receiver<Order>,
    bell: Arc<Bell>,
    video: VideoSubsystem,
    events: EventPump,
    open: Vec<(Arc<Shared>, Drawing)>,
}

impl Drawer {
    fn run(mut self) {
        loop {
            // Without windows there is nothing to look after.
            if self.open.is_empty() {
                let Ok(order) = self.orders.recv() else { return };
                self.obey(order);
            }
            self.bell.wait(LOOK);
            while let Ok(order) = self.orders.try_recv() {
                self.obey(order);
            }
            self.open.retain_mut(|(shared, drawing)| shown(shared, drawing));
            self.look();
        }
    }

    fn obey(&mut self, order: Order) {
        let Order { title, number, shared } = order;
        match Drawing::open(&self.video, &title, number) {
            Ok(drawing) => self.open.push((shared, drawing)),
            Err(why) => shared.fail(why),
        }
    }

    /// Does what happened to windows.
    fn look(&mut self) {
        for event in self.events.poll_iter() {
            let closes = matches!(
                event,
                Event::Quit { .. }
                    | Event::KeyDown { keycode: Some(Keycode::Escape | Keycode::Q), .. }
                    | Event::Window { win_event: WindowEvent::Close, .. }
            );
            let of = event.get_window_id();
            for (shared, drawing) in
                self.open.iter_mut().filter(|(_, drawing)| of.is_none_or(|id| id == drawing.id()))
            {
                match event {
                    _ if closes => shared.close(),
                    Event::Window { .. } => drawing.draw(),
                    _ => {}
                }
            }
        }
    }
}

/// Shows what is new; whether the window stays open.
fn shown(shared: &Shared, drawing: &mut Drawing) -> bool {
    let shown = match shared.take(drawing.picture()) {
        Next::End => {
            shared.go();
            return false;
        }
        Next::Nothing => Ok(()),
        Next::Show => {
            let shown = drawing.show();
            // What was drawn is on the screen from a retrace on, and until then it was waited.
            shared.tell_retrace(drawing.retrace(Monotonic.now()));
            shown
        }
    };
    let stays = shown.is_ok();
    if let Err(why) = shown {
        shared.fail(why);
    }
    stays
}

fn begin() -> Result<(VideoSubsystem, EventPump), String> {
    // Signals are the program's business, and a player is no reason to keep a screen saver away
    // from those who watch something else.
    sdl2::hint::set("SDL_NO_SIGNAL_HANDLERS", "1");
    sdl2::hint::set("SDL_RENDER_SCALE_QUALITY", "linear");
    let sdl = sdl2::init()?;
    let video = sdl.video()?;
    // SDL would rather draw where nobody sees it than say that there is no screen.
    let driver = video.current_video_driver();
    if UNSEEN.contains(&driver) && env::var_os("SDL_VIDEODRIVER").is_none() {
        return Err("there is no screen".to_owned());
    }
    Ok((video, sdl.event_pump()?))
}
