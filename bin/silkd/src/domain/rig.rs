//! An engine for tests, without an executor around it.

use crate::classes::{Classes, algorithm};
use crate::domain::engine::{Engine, Parts};
use crate::domain::sleep::Sleeper;
use crate::settings::Settings;
use crate::{device, stack};
use silk_config::Config;
use silk_stream::mail::mail;
use silk_stream::wake;
use std::os::fd::AsFd;
use std::sync::Arc;

/// A domain with the paths that stand from the start, on a device in memory, with this configuration of all else.
pub fn engine(rest: &str) -> Engine {
    let text = format!("[device]\nkind = \"link\"\naddress = \"10.0.0.1/24\"\n{rest}");
    let config = Config::parse("test", &text).unwrap_or_else(|faults| panic!("{faults}"));
    let mut settings = Settings::new(config, "test".into());
    settings.recipes = stack::recipes(&settings.config).unwrap();
    let opened = device::open(&mut settings).unwrap();
    let end = opened.ends.into_iter().flatten().next().unwrap();
    let event = Arc::new(wake::event().unwrap());
    let watch = Sleeper::new(&end.receive.fds(), event.as_fd()).unwrap().watch();
    let mut engine = Engine::new(Parts {
        domain: 0,
        paths: stack::paths(&settings, &opened.links, &opened.tables, 0).unwrap(),
        receive: end.receive,
        transmits: vec![end.transmit],
        interfaces: Vec::new(),
        devices: Arc::new([]),
        itself: None,
        policy: stack::policy(&settings.config, 64).unwrap(),
        classes: Arc::new(Classes::new(&settings.config)),
        extend: false,
        base: 0,
        rings: (0, 0),
        largest_ring: 0,
        listen: settings.config.listen.clone(),
        keepalive: settings.config.tcp.keepalive,
        congestion: algorithm(settings.config.tcp.congestion),
        tables: opened.tables,
        events: mail().0,
        control_event: event.clone(),
        siblings: Vec::new(),
        watch,
    });
    engine.stand(true).unwrap();
    engine
}
