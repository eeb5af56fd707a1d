//! Which modules a path leads through.

use crate::id::ModuleId;

/// The most stages of one path.
pub const MAX_STAGES: usize = 8;

/// The modules a path is made to lead through, from its top: Scout's `PA_PATHNAME`. Where a
/// service has several links, the one to a module of the route is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Route {
    modules: [u8; MAX_STAGES],
    length: u8,
}

impl Route {
    /// A route through `modules`; `None` when there are more than eight.
    pub fn new(modules: &[ModuleId]) -> Option<Self> {
        let mut route = Self::default();
        modules.iter().all(|module| route.push(*module)).then_some(route)
    }

    /// Leads on through `module`; answers whether there was room.
    pub(crate) fn push(&mut self, module: ModuleId) -> bool {
        let Some(place) = self.modules.get_mut(usize::from(self.length)) else { return false };
        *place = module.0;
        self.length += 1;
        true
    }

    /// The modules, from the top.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = ModuleId> + '_ {
        self.modules[..usize::from(self.length)].iter().map(|module| ModuleId(*module))
    }

    /// Whether the route leads through `module`.
    pub fn contains(&self, module: ModuleId) -> bool {
        self.modules[..usize::from(self.length)].contains(&module.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_holds_eight_modules() {
        let nine: [ModuleId; 9] = core::array::from_fn(|n| ModuleId(n as u8));
        assert_eq!(Route::new(&nine), None);
        let route = Route::new(&nine[..8]).unwrap();
        assert!(route.contains(ModuleId(7)) && !route.contains(ModuleId(8)));
    }
}
