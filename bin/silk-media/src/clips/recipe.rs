//! How the clips of Scout's Table 1 are made: their numbers of frames and rates are the table's, their
//! sizes those of the time, and content and quantiser such that the cost of decoding a frame falls in
//! the proportions of its maximum rates (44.7 : 50.5 : 67.1 : 245.9 frames/s). Of Canyon's cost that is
//! 5.50, 4.87 and 3.66 times; `silk-media measure costs` found 5.61, 4.78 and 3.78.

/// One clip.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recipe {
    /// What Table 1 calls it.
    pub name: &'static str,
    /// The file's name, without its end.
    pub file: &'static str,
    /// What Table 1 says that it shows.
    pub shows: &'static str,
    /// Width and height.
    pub size: (u32, u32),
    /// Frames in a second, as ffmpeg writes it.
    pub rate: &'static str,
    /// Frames.
    pub frames: u32,
    /// The quantiser, 1 to 31: how coarse the picture is, and how few its bits.
    pub quantiser: u32,
    /// Pictures from one that stands alone to the next.
    pub group: u32,
    /// ffmpeg's source and filters, where `SIZE` and `RATE` stand for the above.
    pub content: &'static str,
}

/// The four, from the most to the least complex.
pub(super) const CLIPS: [Recipe; 4] = [
    Recipe {
        name: "Flower",
        file: "flower",
        shows: "a fine texture that moves past",
        size: (352, 240),
        rate: "30000/1001",
        frames: 150,
        quantiser: 6,
        group: GROUP,
        content: "color=c=0x608040:s=1024x240:r=RATE,noise=alls=70:all_seed=11,gblur=sigma=0.7,\
                  scroll=h=0.004,crop=SIZE:0:0",
    },
    Recipe {
        name: "Neptune",
        file: "neptune",
        shows: "a slow flight with grain",
        size: (352, 240),
        rate: "30",
        frames: 1345,
        quantiser: 4,
        group: GROUP,
        content: "mandelbrot=s=SIZE:r=RATE:end_scale=0.02:end_pts=1345:maxiter=400,\
                  noise=alls=13:allf=t:all_seed=12",
    },
    Recipe {
        name: "RedsNightmare",
        file: "reds-nightmare",
        shows: "a computer's drawing",
        size: (320, 240),
        rate: "25",
        frames: 1210,
        quantiser: 3,
        group: GROUP,
        content: "mandelbrot=s=SIZE:r=RATE:end_scale=0.02:end_pts=1210:maxiter=300",
    },
    Recipe {
        name: "Canyon",
        file: "canyon",
        shows: "a small picture of a flight",
        size: (160, 120),
        rate: "30",
        frames: 1758,
        quantiser: 4,
        group: GROUP,
        content: "mandelbrot=s=SIZE:r=RATE:end_scale=0.02:end_pts=1758:maxiter=300",
    },
];

/// A load for the experiment with deadlines: large pictures of so few bits that most come in one packet. That one
/// costs what decoding a picture does, half a millisecond and more: what has to wait for others in turn waits long.
pub(super) const LOAD: Recipe = Recipe {
    name: "Fog",
    file: "fog",
    shows: "a large soft picture in which hardly anything moves",
    size: (1280, 720),
    rate: "24",
    frames: 120,
    quantiser: 31,
    group: 120,
    content: "mandelbrot=s=SIZE:r=RATE:end_scale=0.02:end_pts=30000:maxiter=20,gblur=sigma=20",
};

/// The same for the demonstration, where the contrast must be plain: each packet costs twice as much.
pub(super) const HEAVY: Recipe = Recipe { name: "Bank", file: "bank", size: (1920, 1080), ..LOAD };

impl Recipe {
    /// ffmpeg's arguments but for the file.
    pub(super) fn arguments(&self) -> Vec<String> {
        let (width, height) = self.size;
        // `crop` wants a colon between them.
        let content = self
            .content
            .replace("crop=SIZE", &format!("crop={width}:{height}"))
            .replace("SIZE", &format!("{width}x{height}"))
            .replace("RATE", self.rate);
        let source = format!("-f lavfi -i {content} -frames:v {}", self.frames);
        let arguments = format!("{source} {} -g {} -q:v {}", CODING.join(" "), self.group, self.quantiser);
        arguments.split(' ').map(str::to_owned).collect()
    }
}

/// Pictures in a group as they were coded then.
pub(super) const GROUP: u32 = 15;

/// MPEG-1 as it was coded then: groups IBBPBB… with no cuts in between, slices of at most 1 000 bytes
/// where they can be so small. One thread, and nothing that tells when or by whom, so that every run
/// makes the same bytes.
pub(super) const CODING: [&str; 18] = [
    "-an",
    "-c:v",
    "mpeg1video",
    "-pix_fmt",
    "yuv420p",
    "-bf",
    "2",
    "-b_strategy",
    "0",
    "-sc_threshold",
    "1000000000",
    "-ps",
    "1000",
    "-threads",
    "1",
    "-flags",
    "+bitexact",
    "-bitexact",
];
