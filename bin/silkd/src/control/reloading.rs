//! `silk reload`: classes and limits of a running daemon, and whom it refuses, each wholly, and nothing where there is a fault.

use crate::between::command::Command;
use crate::classes::Classes;
use crate::control::server::Server;
use crate::settings::owns_link;
use silk_config::{Class, Config, Source, Unlisted, Unreadable};
use silk_control::Refusal;
use silk_path::classify::Refused;
use std::sync::Arc;

/// Bytes of faults that are told at most: they fit a message, and a terminal shows them.
const TOLD: usize = 16 << 10;

/// Of a file that cannot be read now: `EIO`; of one whose contents are at fault, `EINVAL`, as of a fault in it.
fn unreadable(why: Unreadable) -> Refusal {
    Refusal { errno: if why.is_of_contents() { libc::EINVAL } else { libc::EIO }, why: why.to_string() }
}

impl Server {
    /// Reads the configuration again, and the file of `[refuse]`. Classes with their limits take effect, all or none, and who is refused
    /// does; what else changed, or classes that need a restart, is named and left.
    pub(crate) fn reload(&mut self) -> Result<(Vec<String>, Vec<String>), Refusal> {
        let refuse = |why: String| Refusal { errno: libc::EINVAL, why };
        let source = Source::read(&self.settings.file).map_err(unreadable)?;
        let new = Config::try_from(&source).map_err(|faults| refuse(faults.within(TOLD)))?;
        let refused = new.refuse.everybody(&source.name).map_err(|why| match why {
            Unlisted::Unreadable(why) => unreadable(why),
            why => refuse(why.to_string()),
        })?;
        let differences = self.settings.config.differences(&new);
        let mut restart: Vec<String> = differences.restart.iter().map(|key| (*key).to_owned()).collect();
        let mut applied = Vec::new();
        if !differences.classes.is_empty() {
            let judged = self.judges_alike(&new).then(|| self.reload_classes(new.classes));
            match judged.transpose().map_err(refuse)? {
                Some(None) => applied = differences.classes,
                Some(Some(why)) => restart.push(why.to_owned()),
                None => restart.push("the classes: what they were judged by differs".to_owned()),
            }
        }
        self.settings.config.refuse = new.refuse;
        // What is in its file may differ, too.
        if refused != *self.settings.refused {
            applied.push(format!("who is refused: {refused}"));
            self.refuse(refused);
        }
        Ok((applied, restart))
    }

    /// Whether what is in force is what the classes of another configuration were checked against: the policies that order them, of
    /// which theirs are places in a list, what these can promise, and what the device counts.
    fn judges_alike(&self, other: &Config) -> bool {
        let own = &self.settings.config;
        let (scheduler, others) = (&own.scheduler, &other.scheduler);
        own.policies == other.policies
            && scheduler.policy == others.policy
            && scheduler.linux_share == others.linux_share
            && own.device.kind == other.device.kind
    }

    /// From now on these are refused, for whom there is room.
    fn refuse(&mut self, refused: Refused) {
        let _ = self.tables.refuse(&refused);
        let refused = Arc::new(refused);
        self.settings.refused = refused.clone();
        self.tell_all(|| Command::Refused(refused.clone()));
    }

    /// From now on there are these classes. Where that needs a restart nothing is changed, and this is what needs it.
    fn reload_classes(&mut self, classes: Vec<Class>) -> Result<Option<&'static str>, String> {
        let mut config = self.settings.config.clone();
        config.classes = classes;
        let mut classes = Classes::new(&config);
        if self.settings.joined {
            classes.join();
        }
        let known = &self.settings.classes;
        if classes.priorities != known.priorities {
            return Ok(Some("the priorities of the classes: there is one executor for each"));
        }
        let Some(classes) = classes.after(known) else {
            return Ok(Some("the names of the classes: there have been 256"));
        };
        // Its executor knows the link's groups and routers.
        if owns_link(&self.settings.config) && classes.domain(classes.default) != known.domain(known.default)
        {
            return Ok(Some(
                "the priority of the default class: its executor has what arrives for the host itself",
            ));
        }
        crate::tables::configure(&self.tables, &self.settings, &classes)?;
        if let Err(error) = self.gate.set_openings(&classes) {
            // It took the old ones before.
            let _ = crate::tables::configure(&self.tables, &self.settings, &self.settings.classes);
            let _ = self.gate.set_openings(&self.settings.classes);
            return Err(error.to_string());
        }
        self.settings.config = config;
        self.settings.classes = classes.clone();
        let classes = Arc::new(classes);
        self.take_spares_back(true);
        self.tell_all(|| Command::Classes(classes.clone()));
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use crate::control::server::tests::server;
    use silk_config::Config;
    use silk_control::{Reply, Request};
    use std::fs;

    #[test]
    fn however_many_faults_there_are_a_reload_is_refused_with_those_that_fit() {
        let folder = tempfile::tempdir().unwrap();
        let mut server = server(folder.path());
        let wrong = "\"192.0.2.7/24\",\n".repeat(400);
        let text = format!("[device]\ninterface = \"eth0\"\n[refuse]\nsource = [\n{wrong}]\n");
        fs::write(folder.path().join("silk.toml"), text).unwrap();
        let (number, theirs) = server.adopt_peer();
        theirs.try_send(&Request::Reload, &[]).unwrap();
        server.hear(number);
        let Reply::Refused(refusal) = theirs.receive().unwrap().message else { panic!("it is not refused") };
        assert_eq!(refusal.errno, libc::EINVAL);
        assert!(refusal.why.contains(" more, which `silk check ") && refusal.why.contains("400 faults in "));
    }

    #[test]
    fn classes_that_were_judged_by_what_is_not_in_force_wait_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut server = server(folder.path());
        let text = |share: &str, budget: &str| {
            format!(
                "[device]\ninterface = \"eth0\"\n[scheduler]\npolicy = \"bert\"\nlinux_share = \"{share}\"\n\
                 [control]\nsocket = \"{}\"\n[[class]]\nname = \"all\"\ndefault = true\n\
                 reserve = {{ budget = \"{budget}\", period = \"10ms\" }}\n",
                folder.path().join("control.sock").display()
            )
        };
        let config = Config::parse("test", &text("50%", "4ms"));
        server.settings.config = config.unwrap_or_else(|faults| panic!("{faults}"));
        let mut reload = |text: String| {
            fs::write(folder.path().join("silk.toml"), text).unwrap();
            server.reload().unwrap_or_else(|refusal| panic!("{}", refusal.why))
        };
        let (applied, restart) = reload(text("10%", "8ms"));
        assert_eq!(applied, [""; 0]);
        assert_eq!(restart, ["scheduler.linux_share", "the classes: what they were judged by differs"]);
        assert_eq!(reload(text("50%", "3ms")), (vec!["class all".to_owned()], Vec::new()));
    }
}
