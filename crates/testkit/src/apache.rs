//! Debian's Apache, unmodified, as tests and experiments run it: one configuration, in which only what they
//! ask about differs. It serves the folder `site` inside its own folder.

use std::path::Path;

/// The account of Debian's web servers, user and group.
pub const USER: &str = "www-data";

/// Where Debian keeps Apache's modules.
const MODULES: &str = "/usr/lib/apache2/modules";

/// One Apache.
#[derive(Clone, Copy, Debug)]
pub struct Apache<'a> {
    /// Where its files are: what it serves (`site`), its process (`apache.pid`), its faults (`apache.err`).
    pub folder: &'a Path,
    /// What it listens at: a port, or an address and a port.
    pub listen: &'a str,
    /// How it divides the work: `prefork`, `worker` or `event`.
    pub model: &'a str,
    /// Whose its children are; `None`: whoever starts it.
    pub user: Option<&'a str>,
    /// Further lines.
    pub settings: &'a str,
}

impl Apache<'_> {
    /// The text of its configuration file.
    pub fn configuration(&self) -> String {
        let Self { listen, model, settings, .. } = self;
        let folder = self.folder.display();
        let user = self.user.map(|name| format!("User {name}\nGroup {name}\n")).unwrap_or_default();
        format!(
            "ServerRoot {folder}
ServerName server
Listen {listen}
PidFile {folder}/apache.pid
DefaultRuntimeDir {folder}
ErrorLog {folder}/apache.err
{user}LoadModule mpm_{model}_module {MODULES}/mod_mpm_{model}.so
LoadModule authz_core_module {MODULES}/mod_authz_core.so
{settings}
DocumentRoot {folder}/site
<Directory />
    Options FollowSymLinks
    AllowOverride None
    Require all granted
</Directory>
"
        )
    }
}

/// Settings of `prefork` by which always `processes` wait for requests, neither more nor fewer.
pub fn standing(processes: u32) -> String {
    format!(
        "ServerLimit {processes}
StartServers {processes}
MinSpareServers {processes}
MaxSpareServers {processes}
MaxRequestWorkers {processes}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_says_what_was_asked_for_and_where_its_files_are() {
        let apache = Apache {
            folder: Path::new("/tmp/x"),
            listen: "10.0.0.1:80",
            model: "prefork",
            user: Some(USER),
            settings: &standing(3),
        };
        let text = apache.configuration();
        for line in [
            "ServerRoot /tmp/x",
            "Listen 10.0.0.1:80",
            "Group www-data",
            "LoadModule mpm_prefork_module /usr/lib/apache2/modules/mod_mpm_prefork.so",
            "MaxRequestWorkers 3",
            "DocumentRoot /tmp/x/site",
        ] {
            assert!(text.lines().any(|own| own == line), "no `{line}` in:\n{text}");
        }
        let own = Apache { user: None, settings: "", ..apache }.configuration();
        assert!(!own.contains("User") && !own.contains("StartServers"), "{own}");
    }
}
