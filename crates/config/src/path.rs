//! `[[path]]` of a graph: path creation with a name (Scout §3.2: a module and attributes), for sockets of `PF_SCOUT`
//! (SILK §3.1). A path of TCP is a byte stream: it connects where it names its remote end, and is bound, to listen, where it
//! does not. Any other carries messages.

use crate::name::read_name;
use crate::read::{Notes, Section, Value};
use crate::scheduler;
use silk_path::{Attr, Attrs, Endpoint};
use std::net::Ipv4Addr;
use std::ops::Range;
use toml::Spanned;
use toml::de::DeValue;

/// TCP's number as a protocol over IP (RFC 9293 §3.1).
const TCP: u16 = 6;

/// `[[path]]`.
#[derive(Clone, Debug)]
pub struct NamedPath {
    /// The name programs ask for.
    pub name: String,
    /// The module whose stage comes first.
    pub module: String,
    /// The attributes creation begins with.
    pub attrs: Attrs,
    /// Where it stands.
    pub span: Range<usize>,
    /// Where its module stands.
    pub module_span: Range<usize>,
}

impl NamedPath {
    pub(crate) fn read(mut section: Section<'_, '_>) -> Self {
        section.require("name", "every path here has one, for programs to ask for");
        section.require("module", "say which module's stage comes first");
        let name = read_name(&mut section, "name").unwrap_or_default();
        let module = section.or("module", String::new());
        let (span, module_span) = (section.span(), section.span_of("module"));
        let attrs = read_attributes(&mut section);
        if attrs.prot_id() == Some(TCP) {
            check_ends(&mut section);
        }
        section.finish();
        Self { name, module, attrs, span, module_span }
    }

    /// Whether programs exchange a stream of bytes over it.
    pub fn is_stream(&self) -> bool {
        self.attrs.prot_id() == Some(TCP)
    }

    /// Notes where a byte stream does not begin at a socket; `first` is the kind of its first module, if there is one.
    pub(crate) fn check(&self, first: Option<&str>, notes: &mut Notes) {
        if self.is_stream() && first.is_some_and(|kind| kind != "socket") {
            let help = "let it begin at the module of kind `socket`";
            notes.advise(self.module_span.clone(), "no byte stream (`protocol = 6`) begins here", help);
        }
    }
}

/// Notes what a byte stream lacks, and what it has in vain.
fn check_ends(section: &mut Section<'_, '_>) {
    if section.has("remote") {
        return;
    }
    if !section.has("local") && !section.has("local_port") {
        let help = "give it a `local` one to listen at, or a `remote` one to connect to".to_owned();
        let message = "a byte stream (`protocol = 6`) needs an end".to_owned();
        section.notes.missing(section.span(), message, help);
    }
    section.forbid("priority", "what listens has that of [listen]: only a path with `remote` has one");
}

fn read_attributes(section: &mut Section<'_, '_>) -> Attrs {
    let port = |port| Attr::Local(Endpoint::v4(Ipv4Addr::UNSPECIFIED, port));
    let all = [
        section.read("local").map(Attr::Local),
        section.between("local_port", 0..=u16::MAX).map(port),
        section.read("remote").map(Attr::Remote),
        section.between("protocol", 0..=u16::MAX).map(Attr::ProtId),
        section.between("tos", 0..=u8::MAX).map(Attr::Tos),
        section.between("priority", 0..=scheduler::HIGHEST).map(Attr::Priority),
    ];
    if section.has("local") {
        section.forbid("local_port", "`local` says the port already");
    }
    let mut attrs = Attrs::new();
    // There is no room for more keys of a module's own alone.
    all.into_iter().flatten().for_each(|attr| _ = attrs.set(attr));
    attrs
}

impl Value for Endpoint {
    fn read(value: &Spanned<DeValue<'_>>, notes: &mut Notes) -> Option<Self> {
        let end = String::read(value, notes)?.parse().ok();
        if end.is_none() {
            let help = "write it like `\"10.0.0.1:80\"` or `\"[fd00::1]:80\"`";
            notes.advise(value.span(), "this is no address with a port", help);
        }
        end
    }
}
