//! `[[policy]]`: several scheduling policies beside each other, each with a part of the paths' time that is its own
//! whatever the others do (Scout §3.3).

use crate::read::{Notes, Section};
use crate::scheduler::Policy;
use crate::suggest::suggestion;
use crate::value::Percent;
use std::ops::Range;

/// The most policies there can be beside each other.
pub const POLICIES: usize = 16;

/// `[[policy]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedPolicy {
    /// What classes call it.
    pub name: String,
    /// How it orders the paths of its classes.
    pub kind: Policy,
    /// The least that it has of the time of all paths, while it has something to do.
    pub share: Percent,
}

/// Reads all of them; none where there is one policy for all, that of `[scheduler]`.
pub(crate) fn read_all(file: &mut Section<'_, '_>) -> Vec<SharedPolicy> {
    let placed = file.tables("policy", "[[policy]]", read);
    if file.is_empty_list("policy") {
        let place = file.span_of("policy");
        let help = "leave `policy` out for the one of `[scheduler]`";
        file.notes.missing(place, "there is no policy in the list".to_owned(), help.to_owned());
    }
    check(&placed, file.notes);
    placed.into_iter().map(|placed| placed.policy).collect()
}

/// A policy, and where its name and its share stand.
struct Placed {
    policy: SharedPolicy,
    name: Range<usize>,
    share: Range<usize>,
}

fn read(mut section: Section<'_, '_>) -> Placed {
    section.require("name", "classes say which is theirs: `name = \"media\"`");
    section.require("kind", "say how it orders paths: `kind = \"edf\"`");
    section.require("share", "say what it has at least: `share = \"30%\"`");
    let placed = Placed {
        policy: SharedPolicy {
            name: section.or("name", String::new()),
            kind: section.or("kind", Policy::FixedPriority),
            share: section.within("share", Percent::of_hundred(1), Percent::of_hundred(1)..=Percent::WHOLE),
        },
        name: section.span_of("name"),
        share: section.span_of("share"),
    };
    section.finish();
    placed
}

fn check(placed: &[Placed], notes: &mut Notes) {
    let mut left = Percent::WHOLE.millionths();
    for (n, this) in placed.iter().enumerate() {
        let name = &this.policy.name;
        if placed[..n].iter().any(|before| before.policy.name == *name) && !name.is_empty() {
            let message = format!("there is a policy `{name}` already");
            notes.advise(this.name.clone(), message, "policies are told apart by their names");
        }
        match left.checked_sub(this.policy.share.millionths()) {
            Some(rest) => left = rest,
            None => {
                notes.fault(this.share.clone(), "the shares of all policies are more than there is");
                break;
            }
        }
        if n == POLICIES {
            notes.fault(this.name.clone(), format!("there can be {POLICIES} policies"));
        }
    }
}

/// The place of the policy that a class names; without a name the first.
pub(crate) fn of_class(section: &mut Section<'_, '_>, policies: &[SharedPolicy]) -> u8 {
    let name: Option<String> = section.read("policy");
    if policies.is_empty() {
        section.forbid("policy", "there is one policy for all classes, unless each is a `[[policy]]`");
        return 0;
    }
    let Some(name) = name else { return 0 };
    let found = policies.iter().position(|policy| policy.name == name);
    if found.is_none() {
        let (span, names) = (section.span_of("policy"), policies.iter().map(|policy| &*policy.name));
        let help = suggestion(&name, &names.collect::<Vec<_>>());
        section.notes.advise(span, format!("there is no policy `{name}`"), help);
    }
    found.and_then(|place| u8::try_from(place).ok()).unwrap_or(0)
}
