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
    /// Opens a window called `title`, in the middle, or beside others where it is the `number`-th (the first is 0).
    /// It takes the size of the first picture.
    ///
    /// # Errors
    /// Where there is no screen, or SDL cannot use it.
    pub fn open(title: &str, number: Option<usize>) -> Result<Self, ScreenError> {
        let windows = WINDOWS.get_or_init(Windows::start).as_ref();
        let Windows { orders, bell } = windows.map_err(|why| ScreenError::NoWindow(why.clone()))?;
        let shared = Arc::new(Shared::new(bell.clone()));
        let (opened, answer) = mpsc::channel();
        let order = Order { title: title.to_owned(), number, shared: shared.clone(), opened };
        let died = || "the thread of the windows died".to_owned();
        orders.send(order).map_err(|_| ScreenError::NoWindow(died()))?;
        bell.ring();
        answer.recv().unwrap_or_else(|_| Err(died())).map_err(ScreenError::NoWindow)?;
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
        Ok(self.0.shown())
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
    opened: Sender<Result<(), String>>,
}

impl Windows {
    fn start() -> Result<Self, String> {
        let (orders, taken) = mpsc::channel();
        let bell = Arc::new(Bell::default());
        let theirs = bell.clone();
        let run = move || {
            // Where the player has a CPU and a priority of its own, they are for decoding. What is refused is
            // done without.
            let _ = place::be_ordinary();
            Drawer { orders: taken, bell: theirs, stage: None, open: Vec::new() }.run();
        };
        let thread = thread::Builder::new().name("windows".to_owned()).spawn(run);
        thread.map_err(|error| error.to_string()).map(|_| Self { orders, bell })
    }
}

/// What the thread has.
struct Drawer {
    orders: Receiver<Order>,
    bell: Arc<Bell>,
    stage: Option<(VideoSubsystem, EventPump)>,
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
        let Order { title, number, shared, opened } = order;
        let drawing = self.stage().and_then(|(video, _)| Drawing::open(video, &title, number));
        let answer = drawing.map(|drawing| self.open.push((shared.clone(), drawing)));
        // Whoever asked and does not wait for the answer has closed it.
        let _ = opened.send(answer);
    }

    /// SDL, begun with the first window.
    fn stage(&mut self) -> Result<&mut (VideoSubsystem, EventPump), String> {
        let stage = match self.stage.take() {
            Some(stage) => stage,
            None => begin()?,
        };
        Ok(self.stage.insert(stage))
    }

    /// Does what happened to windows.
    fn look(&mut self) {
        let Some((_, events)) = &mut self.stage else { return };
        for event in events.poll_iter() {
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
                    // What cannot be drawn now is drawn with the next picture.
                    Event::Window { .. } => _ = drawing.draw(),
                    _ => {}
                }
            }
        }
    }
}

/// Shows what is new; whether the window stays open.
fn shown(shared: &Shared, drawing: &mut Drawing) -> bool {
    let stays = match shared.take(drawing.picture()) {
        Next::End => false,
        Next::Nothing => true,
        Next::Show => {
            let shown = drawing.show();
            // What was drawn is on the screen from a retrace on, and until then it was waited.
            shared.tell_retrace(drawing.retrace(Monotonic.now()));
            shown.is_ok()
        }
    };
    if !stays {
        shared.close();
        shared.go();
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
