//! Whole stacks of silk's against smoltcp's, in virtual time, over the emulated link of `testkit`:
//! what both understand by TCP, UDP, IP of both versions, ARP and neighbour discovery must be the
//! same, whatever the network between them does.

mod behaviour;
mod networks;
mod ours;
mod pair;
mod peer;
#[path = "../rig/mod.rs"]
mod rig;
mod unreliable;
mod wire;
