//! Whom programs on silk do not serve (`[refuse]`). Where packets are told apart, nothing of theirs is taken but what belongs
//! to a connection; and who becomes refused loses the connections that they have made.

use crate::between::names::SocketName;
use crate::domain::engine::Engine;
use crate::domain::expulsion::Expulsion;
use silk_instant::Instant;
use silk_path::classify::Refused;
use silk_path::{Bell, Path, PathId};
use std::net::IpAddr;
use std::sync::Arc;

/// Paths that are looked at in one turn: what comes for others does not wait until all are.
const PART: usize = 128;

impl Engine {
    /// From now on these are refused: the connections that they have made are reset, their programs told so.
    pub fn expel(&mut self, refused: Arc<Refused>) {
        self.expulsion = (!refused.is_empty()).then_some(Expulsion { refused, next: 0 });
    }

    /// Goes on with that.
    pub fn expel_some(&mut self, now: Instant) {
        let Some(mut expulsion) = self.expulsion.take() else { return };
        let (mut looked, mut expelled) = (0, Vec::new());
        for path in self.core.paths.iter_from(expulsion.next).take(PART) {
            looked += 1;
            expulsion.next = path.id().index + 1;
            if self.came_from(path).is_some_and(|remote| expulsion.refused.contains(remote)) {
                expelled.push(path.id());
            }
        }
        expelled.into_iter().for_each(|id| self.expel_one(id, now));
        if looked == PART {
            self.expulsion = Some(expulsion);
        }
    }

    /// Who has made the connection of a path; `None`: we have, or it is none.
    fn came_from(&self, path: &Path) -> Option<IpAddr> {
        let (remote, owner) = (path.state.attrs.remote()?, path.state.attrs.owner()?);
        let name = SocketName::of_owner(owner);
        // Of a program that is gone it is not known any more.
        let ours = self.sockets.get(name).is_some_and(|socket| socket.named);
        (!ours).then_some(remote.ip())
    }

    fn expel_one(&mut self, id: PathId, now: Instant) {
        if let Some(end) = self.end_of(id) {
            end.reset();
        }
        self.core.bell(id, Bell::Abort, now);
        self.settle(id, now);
    }
}
