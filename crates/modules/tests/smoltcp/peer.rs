//! A host whose stack is smoltcp's: an interface, a TCP socket, a UDP socket, and the program that
//! uses the first.

use core::cell::Cell;
use core::net::IpAddr;
use core::time::Duration;
use std::collections::VecDeque;

use silk_instant::Instant;
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{self, DeviceCapabilities, Medium};
use smoltcp::socket::{tcp, udp};
use smoltcp::time;
use smoltcp::wire::{EthernetAddress, IpCidr};

use crate::rig::{ip, ip6, mac};

/// Its number among the hosts: 10.0.0.2 and fd00::2.
pub const NUMBER: u8 = 2;

thread_local! {
    /// Milliseconds, for its timestamps: it asks a function without arguments.
    static CLOCK: Cell<u32> = const { Cell::new(0) };
}

/// What is chosen for its TCP socket.
#[derive(Clone, Debug)]
pub struct Terms {
    pub receive_buffer: usize,
    pub send_buffer: usize,
    /// How long it delays acknowledgements, if it does.
    pub ack_delay: Option<Duration>,
    pub nagle: bool,
    pub congestion: tcp::CongestionControl,
    pub timestamps: bool,
    /// It sends no probes into a closed window, so only this saves it when news of room are lost.
    pub keep_alive: Option<Duration>,
    pub mtu: usize,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            receive_buffer: 32 << 10,
            send_buffer: 32 << 10,
            ack_delay: Some(Duration::from_millis(10)),
            nagle: true,
            congestion: tcp::CongestionControl::Cubic,
            timestamps: false,
            keep_alive: None,
            mtu: 1500,
        }
    }
}

/// The device: frames that have arrived, and frames to be sent.
struct Queues {
    arrived: VecDeque<Vec<u8>>,
    sent: Vec<Vec<u8>>,
    mtu: usize,
}

/// The program on its TCP socket.
#[derive(Default)]
pub struct Program {
    pub to_write: VecDeque<u8>,
    /// It closes its half behind its last octet.
    pub shuts_down: bool,
    /// It does not read.
    pub rests: bool,
    pub received: Vec<u8>,
    /// It has seen the end of the stream.
    pub finished: bool,
}

/// The host.
pub struct Peer {
    queues: Queues,
    interface: Interface,
    sockets: SocketSet<'static>,
    tcp: SocketHandle,
    udp: SocketHandle,
    pub program: Program,
    /// Whether the socket was ever connected.
    pub was_connected: bool,
}

fn duration(duration: Duration) -> time::Duration {
    time::Duration::from_micros(duration.as_micros() as u64)
}

fn instant(now: Instant) -> time::Instant {
    time::Instant::from_micros((now.nanos() / 1_000) as i64)
}

fn tcp_socket(terms: &Terms) -> tcp::Socket<'static> {
    let buffer = |octets| tcp::SocketBuffer::new(vec![0; octets]);
    let mut socket = tcp::Socket::new(buffer(terms.receive_buffer), buffer(terms.send_buffer));
    socket.set_ack_delay(terms.ack_delay.map(duration));
    socket.set_nagle_enabled(terms.nagle);
    socket.set_congestion_control(terms.congestion);
    socket.set_tsval_generator(terms.timestamps.then_some(|| CLOCK.get()));
    socket.set_keep_alive(terms.keep_alive.map(duration));
    socket
}

fn udp_socket() -> udp::Socket<'static> {
    let buffer = || udp::PacketBuffer::new(vec![udp::PacketMetadata::EMPTY; 64], vec![0; 64 << 10]);
    udp::Socket::new(buffer(), buffer())
}

impl Peer {
    pub fn new(terms: &Terms, seed: u64, now: Instant) -> Self {
        let mut queues = Queues { arrived: VecDeque::new(), sent: Vec::new(), mtu: terms.mtu };
        let mut config = Config::new(EthernetAddress(mac(NUMBER)).into());
        config.random_seed = seed;
        let mut interface = Interface::new(config, &mut queues, instant(now));
        interface.update_ip_addrs(|own| {
            own.push(IpCidr::new(ip(NUMBER).into(), 24)).expect("there is room");
            own.push(IpCidr::new(ip6(NUMBER).into(), 64)).expect("there is room");
        });
        let mut sockets = SocketSet::new(Vec::new());
        let (tcp, udp) = (sockets.add(tcp_socket(terms)), sockets.add(udp_socket()));
        Self { queues, interface, sockets, tcp, udp, program: Program::default(), was_connected: false }
    }

    pub fn tcp(&mut self) -> &mut tcp::Socket<'static> {
        self.sockets.get_mut(self.tcp)
    }

    pub fn udp(&mut self) -> &mut udp::Socket<'static> {
        self.sockets.get_mut(self.udp)
    }

    pub fn state(&self) -> tcp::State {
        self.sockets.get::<tcp::Socket<'_>>(self.tcp).state()
    }

    /// Opens a connection to silk's host.
    pub fn connect(&mut self, to: (IpAddr, u16), port: u16) {
        let socket = self.sockets.get_mut::<tcp::Socket<'_>>(self.tcp);
        socket.connect(self.interface.context(), to, port).expect("an unused socket");
    }

    /// A frame arrives; it is looked at when the host acts next.
    pub fn arrive(&mut self, frame: Vec<u8>) {
        self.queues.arrived.push_back(frame);
    }

    /// Does what there is to do at this moment; gives what it sends.
    pub fn act(&mut self, now: Instant) -> Vec<Vec<u8>> {
        CLOCK.set(now.millis() as u32);
        // Whatever the program does may be something to send, and what arrives something to read.
        for _ in 0..2 {
            self.run_program();
            self.interface.poll(instant(now), &mut self.queues, &mut self.sockets);
        }
        self.run_program();
        std::mem::take(&mut self.queues.sent)
    }

    /// When it wants to act next.
    pub fn next_timeout(&mut self, now: Instant) -> Option<Instant> {
        let at = self.interface.poll_at(instant(now), &self.sockets)?;
        Some(Instant::from_micros(at.total_micros().max(0) as u64))
    }

    fn run_program(&mut self) {
        let Program { to_write, shuts_down, rests, received, finished } = &mut self.program;
        let socket = self.sockets.get_mut::<tcp::Socket<'_>>(self.tcp);
        self.was_connected |= socket.may_send();
        if socket.can_send() && !to_write.is_empty() {
            let taken = socket.send_slice(to_write.make_contiguous()).expect("it can send");
            to_write.drain(..taken);
        }
        if to_write.is_empty() && *shuts_down && socket.may_send() {
            *shuts_down = false;
            socket.close();
        }
        if *rests || !self.was_connected {
            return;
        }
        loop {
            match socket.recv(|octets| (octets.len(), octets.to_vec())) {
                Ok(octets) if octets.is_empty() => break,
                Ok(octets) => received.extend(octets),
                Err(tcp::RecvError::Finished) => {
                    *finished = true;
                    break;
                }
                Err(tcp::RecvError::InvalidState) => break,
            }
        }
    }
}

/// A frame that has arrived.
struct Arrived(Vec<u8>);

/// Room for one more frame.
struct Room<'a>(&'a mut Vec<Vec<u8>>);

impl phy::Device for Queues {
    type RxToken<'a> = Arrived;
    type TxToken<'a> = Room<'a>;

    fn receive(&mut self, _: time::Instant) -> Option<(Arrived, Room<'_>)> {
        Some((Arrived(self.arrived.pop_front()?), Room(&mut self.sent)))
    }

    fn transmit(&mut self, _: time::Instant) -> Option<Room<'_>> {
        Some(Room(&mut self.sent))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = self.mtu + silk_wire::eth::HEADER;
        capabilities
    }
}

impl phy::RxToken for Arrived {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

impl phy::TxToken for Room<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, octets: usize, write: F) -> R {
        let mut frame = vec![0; octets];
        let result = write(&mut frame);
        self.0.push(frame);
        result
    }
}
