//! `silk reload`: classes and limits of a running daemon, all or nothing.

use crate::classes::Classes;
use crate::command::Command;
use crate::server::Server;
use silk_config::{Config, Source};
use silk_control::Refusal;
use std::sync::Arc;

impl Server {
    /// Reads the configuration again: classes and limits take effect, all or nothing; what
    /// else changed is named and left.
    pub(crate) fn reload(&mut self) -> Result<(Vec<String>, Vec<String>), Refusal> {
        let refuse = |why: String| Refusal { errno: libc::EINVAL, why };
        let source = Source::read(&self.settings.file).map_err(|e| refuse(e.to_string()))?;
        let new = Config::try_from(&source).map_err(|faults| refuse(faults.to_string()))?;
        let differences = self.settings.config.differences(&new);
        let mut restart: Vec<String> = differences.restart.iter().map(|key| (*key).to_owned()).collect();
        if differences.classes.is_empty() {
            return Ok((Vec::new(), restart));
        }
        let mut config = self.settings.config.clone();
        config.classes = new.classes;
        let mut classes = Classes::new(&config);
        if self.settings.joined {
            classes.join();
        }
        if classes.priorities != self.settings.classes.priorities {
            restart.push("the priorities of the classes: there is one executor for each".to_owned());
            return Ok((Vec::new(), restart));
        }
        crate::start::configure(&self.tables, &self.settings, &classes).map_err(refuse)?;
        if let Err(error) = self.gate.set_openings(&classes) {
            // It took the old ones before.
            let _ = crate::start::configure(&self.tables, &self.settings, &self.settings.classes);
            let _ = self.gate.set_openings(&self.settings.classes);
            return Err(refuse(error.to_string()));
        }
        self.settings.config = config;
        self.settings.classes = classes.clone();
        let classes = Arc::new(classes);
        self.take_spares_back(true);
        self.tell_all(|| Command::Classes(classes.clone()));
        Ok((differences.classes, restart))
    }
}
