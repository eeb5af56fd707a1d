//! What the project needs of its libraries that their safe bindings do not have. Of SDL: [`Planes`]. Of libavcodec:
//! the bitstream filter that turns H.264 as MP4 files hold it (lengths before units, headers apart) into the form
//! of ISO 14496-10 Annex B, with start codes and the headers before each picture that needs them.

mod texture;

pub use texture::Planes;

use ffmpeg_next::codec::packet::Mut;
use ffmpeg_next::{Error, Packet, codec, ffi};
use std::ptr::{NonNull, null_mut};

/// The filter `h264_mp4toannexb` over one stream. What has start codes already passes unchanged.
#[derive(Debug)]
pub struct AnnexB(NonNull<ffi::AVBSFContext>);

// SAFETY: the context is reached through this value alone, whose methods take it by `&mut`, and
// libavcodec ties no context to the thread that made it.
unsafe impl Send for AnnexB {}

impl AnnexB {
    /// A filter for a stream of these parameters.
    ///
    /// # Errors
    /// What the library says: it has no such filter, no memory, or the headers make no sense to it.
    pub fn new(parameters: &codec::Parameters) -> Result<Self, Error> {
        let mut context = null_mut();
        // SAFETY: the name is a string with its zero; the call answers null or a static description.
        let filter = unsafe { ffi::av_bsf_get_by_name(c"h264_mp4toannexb".as_ptr()) };
        if filter.is_null() {
            return Err(Error::BsfNotFound);
        }
        // SAFETY: `filter` is such a description, and `context` a place for the answer.
        check(unsafe { ffi::av_bsf_alloc(filter, &raw mut context) })?;
        let made = Self(NonNull::new(context).ok_or(Error::Unknown)?);
        // SAFETY: the context is new and `par_in` was allocated with it; `parameters` lives through
        // the call, which copies it; a context is initialised once, after its parameters are set.
        unsafe {
            check(ffi::avcodec_parameters_copy((*made.0.as_ptr()).par_in, parameters.as_ptr()))?;
            check(ffi::av_bsf_init(made.0.as_ptr()))?;
        }
        Ok(made)
    }

    /// Filters one packet in place. Answers whether there is one: some only change the filter.
    ///
    /// # Errors
    /// What the library says of a packet that is damaged.
    pub fn filter(&mut self, packet: &mut Packet) -> Result<bool, Error> {
        // SAFETY: the context was initialised in `new`. The filter takes what the packet refers to and
        // leaves it empty, as it must be for the second call; where the first fails it leaves it as
        // it was. This filter makes at most one packet of one, so one answer is all there is.
        let received = unsafe {
            check(ffi::av_bsf_send_packet(self.0.as_ptr(), packet.as_mut_ptr()))?;
            check(ffi::av_bsf_receive_packet(self.0.as_ptr(), packet.as_mut_ptr()))
        };
        match received {
            Ok(()) => Ok(true),
            Err(Error::Other { errno: ffmpeg_next::error::EAGAIN }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Drop for AnnexB {
    fn drop(&mut self) {
        let mut context = self.0.as_ptr();
        // SAFETY: `new` made the context and nobody else has it; it is not used again.
        unsafe { ffi::av_bsf_free(&raw mut context) };
    }
}

fn check(answer: i32) -> Result<(), Error> {
    if answer < 0 { Err(Error::from(answer)) } else { Ok(()) }
}
