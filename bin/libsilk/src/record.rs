//! A socket in words: what a process leaves to its next image, or gives to the process that it passes the socket to.

use crate::settings::{self, put_bits};
use crate::socket::{self, Role, Socket, stage};
use silk_stream::SHARED_WORDS;
use std::sync::atomic::Ordering::Relaxed;

/// How many words there are.
pub const WORDS: usize = BEFORE + settings::WORDS + FOREIGN + 1;
/// Those before the options: shape, flags, what is shut down with the role, slot, generation.
const BEFORE: usize = 5;
/// Those behind the options: what it was given of others.
const FOREIGN: usize = 8;
/// What the processes that hold a socket tell each other of it: its shape, flags, what is shut down with the role, and options.
pub type SharedWords = [u32; SHARED_WORDS];

/// So many of these, the first, are sets of bits, each of which stands for itself: those before the options, and the first two of
/// the options. The others are numbers.
const SETS: usize = 5;

/// What a socket does, by its number.
const ROLES: [Role; 3] = [Role::Stream, Role::Listener, Role::Datagram];

/// A socket that silk serves, or of which it is not decided yet who does.
pub fn describe(socket: &Socket) -> Vec<u32> {
    let (slot, generation) = socket.name();
    let mut words = Vec::with_capacity(WORDS);
    let head = [socket.shape.load(Relaxed), socket.flags.load(Relaxed), mixed(socket), slot, generation];
    words.extend(head);
    words.extend(socket.settings.words());
    words.extend(socket.foreign.iter().map(|word| word.load(Relaxed)));
    // An undecided socket is told from a served one by its mark in the last word.
    words.push(u32::from(socket.is_served()));
    words
}

/// What this process would tell others that hold the socket.
pub fn shared_words(socket: &Socket) -> SharedWords {
    let mut words = [0; SHARED_WORDS];
    let head = [socket.shape.load(Relaxed), socket.flags.load(Relaxed), mixed(socket)];
    let all = head.into_iter().chain(socket.settings.words());
    words.iter_mut().zip(all).for_each(|(word, value)| *word = value);
    words
}

/// The bits by which these differ: of a number all.
pub fn differing(before: &SharedWords, after: &SharedWords) -> SharedWords {
    let mut bits = [0; SHARED_WORDS];
    for (at, (bits, (before, after))) in bits.iter_mut().zip(before.iter().zip(after)).enumerate() {
        *bits = if at >= SETS && before != after { u32::MAX } else { before ^ after };
    }
    bits
}

/// Takes over these `bits` of what another process has told. What it has made of the words is that program's affair.
pub fn take_over(socket: &Socket, words: &SharedWords, bits: &SharedWords) {
    let &[shape, flags, mixed, ref options @ ..] = words;
    let &[of_shape, of_flags, of_mixed, ref of_options @ ..] = bits;
    put_bits(&socket.shape, shape, of_shape);
    put_bits(&socket.flags, flags, of_flags);
    put_bits(&socket.shut, mixed >> 2, of_mixed >> 2);
    if of_mixed & 3 != 0
        && let Some(role) = ROLES.get(mixed as usize & 3)
    {
        socket.set_role(*role);
    }
    socket.settings.put_bits(options, of_options);
}

/// What is shut down, and the role.
fn mixed(socket: &Socket) -> u32 {
    let role = ROLES.iter().position(|role| *role == socket.role()).unwrap_or(0) as u32;
    socket.shut.load(Relaxed) << 2 | role
}

/// The shape of the socket in these words.
pub fn shape(words: &[u32]) -> Option<u32> {
    words.first().copied()
}

/// The slot of the socket in these words and its use.
pub fn name(words: &[u32]) -> Option<(u32, u32)> {
    words.get(3..5).and_then(|name| Some((*name.first()?, *name.last()?)))
}

/// Makes the socket, with one descriptor; `None` if these are no such words, or there are too many sockets.
pub fn restore(words: &[u32]) -> Option<&'static Socket> {
    let words: &[u32; WORDS] = words.try_into().ok()?;
    let &[shape, flags, mixed, slot, generation, ref rest @ ..] = words;
    let (options, served) = rest.split_last_chunk::<1>()?;
    let (options, foreign) = options.split_last_chunk::<FOREIGN>()?;
    let role = ROLES.get(mixed as usize & 3).copied()?;
    let socket = socket::make(stage::UNDECIDED, shape, flags)?;
    socket.settings.set(options.try_into().ok()?);
    socket.foreign.iter().zip(foreign).for_each(|(word, value)| word.store(*value, Relaxed));
    socket.shut.store(mixed >> 2, Relaxed);
    if *served == [1] {
        socket.serve(slot, generation, role);
    }
    Some(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::flag;

    #[test]
    fn a_socket_is_the_same_again() {
        let socket = socket::make(stage::UNDECIDED, 3, 2048).unwrap();
        socket.settings.flags.store(flag::REUSE_PORT, Relaxed);
        socket.shut.store(2, Relaxed);
        socket.foreign[1].store(7, Relaxed);
        let undecided = describe(socket);
        assert_eq!(undecided.len(), WORDS);
        assert!(restore(&undecided).is_some_and(Socket::is_undecided));
        for role in ROLES {
            socket.serve(77, 5, role);
            let words = describe(socket);
            assert_eq!((shape(&words), name(&words)), (Some(3), Some((77, 5))));
            let again = restore(&words).unwrap();
            assert!(again.is_served() && again.index() != socket.index());
            assert_eq!((again.role(), again.name(), describe(again)), (role, (77, 5), words));
        }
    }

    #[test]
    fn other_words_are_no_socket() {
        let socket = socket::make(stage::UNDECIDED, 0, 0).unwrap();
        let words = describe(socket);
        assert!(restore(&words[1..]).is_none() && restore(&[]).is_none());
        let mut strange = words.clone();
        strange[2] = 3;
        assert!(restore(&strange).is_none(), "a role that there is not");
        assert_eq!(name(&words[..4]), None);
    }
}
