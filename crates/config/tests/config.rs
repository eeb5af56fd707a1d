//! What a configuration that is right says.

use proptest::prelude::*;
use silk_config::{ByteSize, Config, DeviceKind, Graph, Policy, Reload, keys};
use silk_path::service::{NET, RESOLVER, Service};
use silk_path::{BadParameter, Catalogue, Kind, Module, ModuleSpec, Parameter, ParameterKind};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

const ISSUE: &str = include_str!("good/issue.toml");
const EVERYTHING: &str = include_str!("good/everything.toml");
const GRAPH: &str = include_str!("good/graph.toml");
const REFERENCE: &str = include_str!("../../../docs/configuration.md");

fn config(text: &str) -> Config {
    Config::parse("silk.toml", text).unwrap_or_else(|faults| panic!("{faults}"))
}

#[test]
fn the_shortest_configuration_has_defaults_for_the_rest() {
    let short = config("[device]\ninterface = \"eth0\"\n");
    assert_eq!(short.device.kind, DeviceKind::Xdp);
    assert_eq!(short.scheduler.policy, Policy::FixedPriority);
    assert_eq!(short.classes.len(), 1);
    assert!(short.classes[0].default);
    assert_eq!(short.memory.receive_ring, ByteSize::kib(128));
    assert_eq!(short.tcp.time_wait, Duration::from_secs(60));
    assert_eq!(short.control.mode.bits(), 0o660);
}

/// Line, message and advice of each fault.
fn faults(text: &str) -> Vec<(usize, String, String)> {
    let faults = Config::parse("silk.toml", text).unwrap_err();
    let advice = |help: &Option<String>| help.clone().unwrap_or_default();
    faults.iter().map(|fault| (faults.place(fault).0, fault.message.clone(), advice(&fault.help))).collect()
}

#[test]
fn a_text_without_quotes_is_told_as_one_whatever_it_begins_as() {
    let words = ["native", "inherit", "tap", "fixed-priority", "eth0"];
    let numbers = ["10.0.0.1", "10.0.0.0/8", "02:00:00:00:00:01"];
    for word in words.into_iter().chain(numbers) {
        let help = format!("a text is in quotes: `\"{word}\"`");
        let told = faults(&format!("[device]\ninterface = \"eth0\"\nmode = {word} # what is meant\n"));
        assert_eq!(told, [(3, "this is no value".to_owned(), help)], "{word}");
    }
    let told = faults("[device]\ninterface = \"eth0\"\nredirects = False\n");
    assert_eq!(told, [(3, "this is no value".to_owned(), "it is written small: `false`".to_owned())]);
}

#[test]
fn what_goes_with_a_word_that_is_wrong_is_not_judged() {
    let lines = |text: &str| faults(text).iter().map(|(line, ..)| *line).collect::<Vec<_>>();
    let (named, classes) = ("[device]\ninterface = \"eth0\"\n", "[[class]]\nname = \"a\"\n");
    assert_eq!(lines(&format!("{named}kind = \"pakcet\"\naddress = \"10.0.0.2/24\"\nring = 64\n")), [3]);
    assert_eq!(lines("[device]\nkind = \"tpa\"\naddress = \"10.0.0.2/24\"\n"), [2]);
    assert_eq!(lines(&format!("{named}napi = \"thread\"\nnapi_cpu = 1\nreceive = \"prompt\"\n")), [3]);
    assert_eq!(lines(&format!("{named}{classes}default = \"yes\"\n")), [5]);
}

#[test]
fn a_link_to_no_module_is_told_the_modules_that_have_a_name() {
    let text = "links = [\"tpc.down -> nowhere.up\"]\n[[module]]\nname = \"ip\"\n[[module]]\nname = \"ip\"\n\
                [[module]]\nkind = \"eth\"\n[[module]]\nname = \"a b\"\n[[module]]\nname = \"tcp\"\n";
    let faults = Graph::parse("graph.toml", text).unwrap_err();
    let nowhere = faults.iter().find(|fault| fault.message == "there is no module `nowhere`").unwrap();
    assert_eq!(nowhere.help.as_deref(), Some("there is `ip` and `tcp`"));
}

#[test]
fn packets_belong_to_the_first_class_with_a_matching_rule() {
    let config = config(EVERYTHING);
    let class = |source, dscp, port| &*config.classes[config.class_of(source, dscp, port)].name;
    let video = IpAddr::V4(Ipv4Addr::new(10, 2, 3, 4));
    assert_eq!(class(video, 46, 554), "video");
    assert_eq!(class(video, 34, 8554), "video");
    assert_eq!(class(video, 0, 554), "rest");
    assert_eq!(class(Ipv4Addr::new(10, 3, 3, 4).into(), 46, 554), "rest");
    assert_eq!(config.rules().count(), 8);
}

#[test]
fn a_reload_applies_classes_and_names_what_needs_a_restart() {
    let old = config(ISSUE);
    assert!(old.differences(&old).is_empty());
    let classes = config(&ISSUE.replace("10.99.0.3", "10.99.0.4"));
    assert_eq!(
        old.differences(&classes),
        Reload { classes: vec!["class preferred".into()], ..Reload::default() }
    );
    let mut fewer = old.clone();
    fewer.classes.reverse();
    assert_eq!(old.differences(&fewer).classes, ["the order of the classes"]);
    fewer.classes.retain(|class| class.default);
    assert_eq!(old.differences(&fewer).classes, ["class preferred is gone"]);
    let more = config(&ISSUE.replace("eth0", "eth1").replace("extend = true", "extend = false"));
    let restart = vec!["device.interface", "scheduler.extend"];
    assert_eq!(old.differences(&more), Reload { restart, ..Reload::default() });
    let graph = config(&format!("graph = \"/etc/silk/echo.toml\"\n{ISSUE}"));
    assert_eq!(old.differences(&graph).restart, ["graph"]);
    let probes = config(&format!("{ISSUE}\n[tcp.keepalive]\nprobes = 3\n"));
    assert_eq!(old.differences(&probes).restart, ["tcp.keepalive.probes"]);
    let own = "[device]\nkind = \"packet\"\ninterface = \"eth0\"\naddress = \"10.0.0.1/24\"\n";
    let routed = config(&format!("{own}[[device.route]]\nto = \"10.1.0.0/16\"\nvia = \"10.0.0.9\"\n"));
    assert_eq!(config(own).differences(&routed).restart, ["device.route"]);
    let refusing = config(&format!("{ISSUE}\n[refuse]\nsource = \"192.0.2.0/24\"\n"));
    assert!(old.differences(&refusing).is_empty(), "who is refused is compared with what is in its file");
}

#[test]
fn a_graph_keeps_what_it_does_not_know_for_the_modules() {
    let graph = Graph::parse("graph.toml", GRAPH).unwrap();
    assert!(Graph::is_one(GRAPH) && !Graph::is_one(ISSUE));
    assert_eq!(graph.module("udp-copy").unwrap().kind, "udp");
    assert_eq!(graph.module("eth").unwrap().params[0].key, "mtu");
    let links: Vec<String> = graph.links.iter().map(|link| format!("{}-{}", link.from, link.to)).collect();
    assert_eq!(links, ["ip.down-eth.up", "udp.down-ip.up", "udp-copy.down-ip.up"]);
    assert_eq!(graph.paths[0].attrs.local().map(|local| local.port()), Some(7));
}

const KINDS: [Kind; 2] = [
    Kind {
        name: "udp",
        services: &[Service::offered("up", NET), Service::needed("down", NET)],
        parameters: &[Parameter { name: "checksum", kind: ParameterKind::Flag, required: false }],
    },
    Kind {
        name: "eth",
        services: &[Service::offered("up", NET), Service::offered("arp", RESOLVER)],
        parameters: &[],
    },
];

struct Kinds;

impl Catalogue for Kinds {
    fn kinds(&self) -> &[Kind] {
        &KINDS
    }
    fn make(&self, spec: &ModuleSpec) -> Result<Box<dyn Module>, BadParameter> {
        panic!("a check makes no {}", spec.name)
    }
}

#[test]
fn what_the_modules_find_wrong_with_a_graph_has_its_place_in_the_text() {
    let text = r#"links = ["udp.down -> eth.arp", "udp.dwon -> eht.up"]

[[module]]
name = "udp"
checksum = "yes"
colour = 3

[[module]]
name = "eth"

[[module]]
name = "tcp"
kind = "udb"
"#;
    let faults = Graph::check("g", text, &Kinds).unwrap_err();
    let told: Vec<String> = faults
        .iter()
        .map(|fault| {
            let (line, column) = faults.place(fault);
            format!("{line}:{column} {}; {}", fault.message, fault.help.as_deref().unwrap_or("-"))
        })
        .collect();
    assert_eq!(
        told,
        [
            "1:10 a service of type net cannot be linked to one of type resolve (provider); -",
            "1:33 module `udp` has no service `dwon`; it has up, down",
            "1:33 there is no module `eht`; did you mean `eth`?",
            "3:1 module `udp`: its service `down` of type net must be linked; -",
            "5:12 this must be true or false; -",
            "6:10 there is no parameter `colour`; there is `checksum`",
            "11:1 there is no module of kind `udb`; did you mean `udp`?",
        ]
    );
}

/// The section of the reference that describes `section`, up to the next of its kind.
fn described(section: &str) -> &'static str {
    let heading = format!("\n## `{section}`");
    let at = REFERENCE.find(&heading).unwrap_or_else(|| panic!("no heading for {section}"));
    let rest = &REFERENCE[at + heading.len()..];
    &rest[..rest.find("\n## ").unwrap_or(rest.len())]
}

#[test]
fn the_reference_describes_every_key() {
    for (section, key) in keys() {
        match &*section {
            "the outermost table" if key == "graph" => assert!(REFERENCE.contains("graph = \"/")),
            "the outermost table" => assert!(REFERENCE.contains(&format!("[{key}]"))),
            "reserve" => assert!(described("[[class]]").contains(key)),
            _ => assert!(described(&section).contains(&format!("\n| `{key}` |")), "{section} {key}"),
        }
    }
}

#[test]
fn the_examples_of_the_reference_are_right() {
    let examples: Vec<&str> = REFERENCE.split("```toml\n").skip(1).collect();
    assert!(!examples.is_empty());
    for example in examples {
        let text = example.split("```").next().unwrap();
        if Graph::is_one(text) {
            Graph::parse("example", text).unwrap_or_else(|faults| panic!("{faults}"));
        } else {
            config(text);
        }
    }
}

/// One of the good files with a piece cut out and another put in.
fn mangled() -> impl Strategy<Value = String> {
    let file = prop_oneof![Just(ISSUE), Just(EVERYTHING), Just(GRAPH)];
    (file, any::<(u16, u8)>(), "\\PC{0,6}|[\\[\\]=\".,{}0-9\n]{0,4}").prop_map(|(file, (at, cut), put)| {
        let mut chars: Vec<char> = file.chars().collect();
        let at = usize::from(at) % chars.len();
        let end = (at + usize::from(cut % 16)).min(chars.len());
        chars.splice(at..end, put.chars());
        chars.into_iter().collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_text_is_accepted_or_refused_with_faults_in_order(text in prop_oneof![mangled(), "\\PC{0,200}"]) {
        for faults in [Config::parse("f", &text).err(), Graph::parse("f", &text).err()].into_iter().flatten() {
            let starts: Vec<usize> = faults.iter().map(|fault| fault.span.start).collect();
            prop_assert!(!starts.is_empty() && starts.is_sorted());
            prop_assert!(faults.to_string().ends_with("nothing was applied"));
        }
    }
}
