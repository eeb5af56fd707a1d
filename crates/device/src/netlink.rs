//! What Linux knows about the interface it shares with silk (rtnetlink(7)): the interface
//! itself, its addresses, routes and neighbours. Linux stays the one who decides them: nothing
//! here configures anything, it only looks, listens, and asks for a neighbour to be resolved.

pub mod filter;
mod finder;
pub(crate) mod generic;
mod interface;
pub mod ipsec;
pub(crate) mod line;
mod neighbour;
mod rules;
mod table;
mod watch;

use std::fmt;
use std::io;

use netlink_packet_core::{
    DoneMessage, NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

pub use finder::{Finder, Found};
pub use interface::{Interface, LocalAddress};
pub use neighbour::{Neighbour, Reach};
pub use rules::{Action, Rule, Rules};
pub use table::{Table, TableRoute, Target};
pub use watch::{Change, Watch};

/// Room for a part of a dump, in bytes.
const ROOM: usize = 32 << 10;

/// Questions to the kernel about its network. Answers are at hand in the kernel, so asking
/// does not wait for the network; still it is for set-up and first packets, not for every one.
pub struct Netlink {
    socket: Socket,
    sequence: u32,
}

/// Why a question had no answer.
#[derive(Debug)]
pub enum NetlinkError {
    /// The kernel refused it: there is no such route, interface or neighbour, or no right to
    /// ask.
    Refused(io::Error),
    /// The socket failed.
    Socket(io::Error),
    /// The kernel's answer could not be understood.
    Garbled(String),
}

impl fmt::Display for NetlinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(error) => write!(f, "the kernel refused: {error}"),
            Self::Socket(error) => write!(f, "could not ask the kernel: {error}"),
            Self::Garbled(what) => write!(f, "could not understand the kernel: {what}"),
        }
    }
}

impl std::error::Error for NetlinkError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Refused(error) | Self::Socket(error) => Some(error),
            Self::Garbled(_) => None,
        }
    }
}

impl Netlink {
    /// A line to the kernel, in the network namespace of the calling thread.
    pub fn open() -> Result<Self, NetlinkError> {
        let mut socket = Socket::new(NETLINK_ROUTE).map_err(NetlinkError::Socket)?;
        socket.bind_auto().map_err(NetlinkError::Socket)?;
        socket.connect(&SocketAddr::new(0, 0)).map_err(NetlinkError::Socket)?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Asks for one thing, or tells one.
    fn ask(
        &mut self,
        flags: u16,
        message: RouteNetlinkMessage,
    ) -> Result<Vec<RouteNetlinkMessage>, NetlinkError> {
        self.send(NLM_F_ACK | flags, message)?;
        self.answers()
    }

    /// Asks for everything of a kind.
    fn dump(&mut self, message: RouteNetlinkMessage) -> Result<Vec<RouteNetlinkMessage>, NetlinkError> {
        self.send(NLM_F_DUMP, message)?;
        self.answers()
    }

    /// The same, and hands over one after the other.
    fn dump_each(
        &mut self,
        message: RouteNetlinkMessage,
        take: impl FnMut(RouteNetlinkMessage),
    ) -> Result<(), NetlinkError> {
        self.send(NLM_F_DUMP, message)?;
        self.each_answer(take)
    }

    fn send(&mut self, flags: u16, message: RouteNetlinkMessage) -> Result<(), NetlinkError> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = self.sequence;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(message));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0).map_err(NetlinkError::Socket)?;
        Ok(())
    }

    /// Everything up to the kernel's last word on the last question.
    fn answers(&mut self) -> Result<Vec<RouteNetlinkMessage>, NetlinkError> {
        let mut answers = Vec::new();
        self.each_answer(|answer| answers.push(answer))?;
        Ok(answers)
    }

    fn each_answer(&mut self, mut take: impl FnMut(RouteNetlinkMessage)) -> Result<(), NetlinkError> {
        loop {
            let bytes = receive(&self.socket).map_err(NetlinkError::Socket)?;
            for message in messages(&bytes) {
                let message = message?;
                if message.header.sequence_number != self.sequence {
                    continue; // what is left of a question that failed half way
                }
                match message.payload {
                    NetlinkPayload::InnerMessage(answer) => take(answer),
                    // It may have ended in the middle.
                    NetlinkPayload::Done(DoneMessage { code: code @ ..0, .. }) => {
                        return Err(NetlinkError::Refused(io::Error::from_raw_os_error(
                            code.saturating_neg(),
                        )));
                    }
                    NetlinkPayload::Done(_) => return Ok(()),
                    NetlinkPayload::Error(error) if error.code.is_none() => return Ok(()),
                    NetlinkPayload::Error(error) => return Err(NetlinkError::Refused(error.to_io())),
                    _ => {}
                }
            }
        }
    }
}

/// What waits next. Into each part of a dump the kernel puts as much as whoever reads has last shown room for, but for 32 KB at most, and
/// where a single message is longer, such as that of a route with hundreds of next hops, the dump is over.
fn receive(socket: &Socket) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(ROOM);
    let (len, _) = socket.recv_from(&mut bytes, libc::MSG_PEEK | libc::MSG_TRUNC)?;
    bytes.clear();
    bytes.reserve(len);
    socket.recv_from(&mut bytes, 0)?;
    Ok(bytes)
}

/// The messages of one datagram; the first that cannot be understood is the last.
fn messages(
    mut bytes: &[u8],
) -> impl Iterator<Item = Result<NetlinkMessage<RouteNetlinkMessage>, NetlinkError>> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        match NetlinkMessage::<RouteNetlinkMessage>::deserialize(bytes) {
            Ok(message) => {
                // Messages are padded to four bytes; a length of nothing would not end.
                let len = (message.header.length as usize).next_multiple_of(4).max(4);
                bytes = bytes.get(len..).unwrap_or(&[]);
                Some(Ok(message))
            }
            Err(error) => {
                bytes = &[];
                Some(Err(NetlinkError::Garbled(error.to_string())))
            }
        }
    })
}
