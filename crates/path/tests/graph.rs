//! A graph is checked as a whole: every fault is found at once, and each says what is wrong.

use silk_path::service::{NET, RESOLVER, RESOLVES, Service};
use silk_path::*;

const UP: Service = Service::offered("up", NET);
const DOWN: Service = Service::needed("down", NET);

const KINDS: &[Kind] = &[
    Kind { name: "device", services: &[UP], parameters: &[] },
    Kind {
        name: "layer",
        services: &[UP, DOWN, Service::wanted("res", RESOLVES)],
        parameters: &[
            Parameter { name: "size", kind: ParameterKind::Number(1, 9), required: false },
            Parameter {
                name: "address",
                kind: ParameterKind::List(&ParameterKind::Network),
                required: false,
            },
        ],
    },
    Kind { name: "names", services: &[Service::offered("res", RESOLVER), DOWN], parameters: &[] },
    Kind {
        name: "strict",
        services: &[DOWN],
        parameters: &[Parameter {
            name: "mode",
            kind: ParameterKind::OneOf(&["fast", "safe"]),
            required: true,
        }],
    },
];

struct Modules;

struct Plain(Kind, Option<ModuleId>);

impl Module for Plain {
    fn kind(&self) -> &'static str {
        self.0.name
    }
    fn services(&self) -> &'static [Service] {
        self.0.services
    }
    fn initialise(&mut self, id: ModuleId) {
        self.1 = Some(id);
    }
    fn create_stage(&mut self, _: &mut Create<'_>) -> Result<Step, CreateError> {
        Err(CreateError::NotForPaths(self.0.name))
    }
}

impl Catalogue for Modules {
    fn kinds(&self) -> &[Kind] {
        KINDS
    }
    fn make(&self, spec: &ModuleSpec) -> Result<Box<dyn Module>, BadParameter> {
        if spec.parameter("size") == Some(&Value::Number(9)) {
            return Err(BadParameter { name: "size".into(), what: "nine is too much today".into() });
        }
        let kind = KINDS.iter().find(|kind| kind.name == spec.kind).expect("checked before");
        Ok(Box::new(Plain(*kind, None)))
    }
}

fn text(faults: &[Fault]) -> Vec<String> {
    faults.iter().map(Fault::to_string).collect()
}

fn good() -> GraphSpec {
    GraphSpec::default()
        .module("eth", "layer", &[])
        .module("net", "device", &[])
        .module("arp", "names", &[])
        .module("ip", "layer", &[("size", Value::Number(3))])
        .link("eth.down", "net.up")
        .link("eth.up", "ip.down")
        .link("arp.down", "eth.up")
        .link("ip.res", "arp.res")
}

#[test]
fn a_good_graph_is_built_and_every_module_initialised() {
    let graph = Graph::build(&good(), &Modules).unwrap_or_else(|faults| panic!("{:?}", text(&faults)));
    let modules = graph.modules();
    let eth = modules.find("eth").unwrap();
    assert_eq!(modules.peers(eth, 0).len(), 2, "ip and arp");
    assert_eq!(modules.of_kind("names").map(|id| modules.name(id)), Some("arp"));
    for (id, name, module) in modules.iter() {
        let plain = (module as &dyn core::any::Any).downcast_ref::<Plain>().unwrap();
        assert_eq!(plain.1, Some(id), "{name}");
    }
}

#[test]
fn every_fault_is_found_at_once() {
    let spec = GraphSpec::default()
        .module("eth", "laier", &[])
        .module("net", "device", &[("size", Value::Number(3))])
        .module("net", "device", &[])
        .module("ip", "layer", &[("size", Value::Number(10)), ("sizze", Value::Flag(true))])
        .module("ctl", "strict", &[])
        .module("arp", "names", &[])
        .link("ip.down", "nett.up")
        .link("ip.down", "net.side")
        .link("ip.up", "arp.res")
        .link("ctl.down", "net.up")
        .link("net.up", "ctl.down")
        .link("ip", "net.up");
    assert_eq!(
        text(&check(&spec, &Modules)),
        [
            "module 1: there is no module of kind \"laier\"; did you mean \"layer\"?",
            "module 2, parameter size: there is no parameter \"size\"",
            "module 3: there is a module \"net\" already",
            "module 4, parameter size: this must be a number from 1 to 9",
            "module 4, parameter sizze: there is no parameter \"sizze\"; did you mean \"size\"?",
            "module 5: the parameter \"mode\" is missing",
            "link 1, to: there is no module \"nett\"; did you mean \"net\"?",
            "link 2, to: module \"net\" has no service \"side\"; it has up",
            "link 3: a service of type net cannot be linked to one of type resolve (provider)",
            "link 5: these services are linked already",
            "link 6, from: module \"ip\" has no service \"\"; it has up, down, res",
            "module 4: its service \"down\" of type net must be linked",
            "module 6: its service \"down\" of type net must be linked",
        ]
    );
}

#[test]
fn modules_that_need_one_another_have_no_order() {
    let spec = good()
        .module("a", "layer", &[])
        .module("b", "layer", &[])
        .link("a.down", "b.up")
        .link("b.down", "a.up");
    assert_eq!(
        text(&check(&spec, &Modules)),
        ["module 5: these modules need one another, so none can be initialised first: a, b"]
    );
}

#[test]
fn a_circle_of_links_without_needs_is_allowed() {
    let spec = good().link("eth.up", "net.up");
    assert_eq!(text(&check(&spec, &Modules)), Vec::<String>::new());
}

#[test]
fn a_parameter_that_only_its_module_can_refuse() {
    let spec = good().module("ip2", "layer", &[("size", Value::Number(9))]).link("ip2.down", "eth.up");
    let faults = Graph::build(&spec, &Modules).err().expect("refused");
    assert_eq!(text(&faults), ["module 5, parameter size: nine is too much today"]);
}

#[test]
fn lists_of_networks_are_checked_one_by_one() {
    let address = |texts: &[&str]| {
        let values = texts.iter().map(|text| Value::Text((*text).into())).collect();
        good().module("x", "layer", &[("address", Value::List(values))]).link("x.down", "eth.up")
    };
    assert!(check(&address(&["10.0.0.1/24", "10.0.1.1/32"]), &Modules).is_empty());
    assert_eq!(
        text(&check(&address(&["10.0.0.1/24", "10.0.1.1/33"]), &Modules)),
        ["module 5, parameter address: this must be an address with its prefix such as \"10.0.0.1/24\""]
    );
}

#[test]
fn more_modules_than_a_graph_can_have() {
    let spec = (0..MAX_MODULES + 1)
        .fold(GraphSpec::default(), |spec, n| spec.module(&format!("m{n}"), "device", &[]));
    assert_eq!(text(&check(&spec, &Modules)), ["module 65: a graph has at most 64 modules"]);
}
