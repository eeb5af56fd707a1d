//! Every scheduling policy in a running daemon, and several beside each other: whatever the order, what is asked for comes.
//! Whose turn it is `silkd`'s own tests say (`tests_of_policies.rs`).

use crate::files::{fetch_all, site};
use crate::host::Silk;
use crate::priority::client;
use crate::programs::text;
use silk_testkit::netns::{CLIENT, INTERFACE, PREFERRED};

/// The classes, the first with these keys, the other with those.
fn classes(preferred: &str, standard: &str) -> String {
    format!(
        "[[class]]\nname = \"preferred\"\nsource = \"{PREFERRED}\"\n{preferred}\n\n\
         [[class]]\nname = \"standard\"\ndefault = true\n{standard}\n"
    )
}

/// Files, and small questions of both classes at once, under this scheduling.
fn serves(scheduling: &str) {
    let Some(silk) = Silk::start_with(&format!("kind = \"xdp\"\ninterface = \"{INTERFACE}\"\n"), scheduling)
    else {
        return;
    };
    site(&silk);
    silk.write("asking.py", include_str!("asking.py"));
    let _files = silk.serve("python3", &["-m", "http.server", "80", "--directory", "site"], 80);
    let _answers = silk.serve("python3", &["asking.py", "serve", "7"], 7);
    let commands = ["fill 300000", "fill 1"].repeat(20);
    let clients = [PREFERRED, CLIENT].map(|from| client(&silk, from, &commands));
    let answers = clients.map(|mut client| std::thread::spawn(move || text(&mut client)));
    for answer in answers {
        assert_eq!(answer.join().unwrap(), "300000\n1\n".repeat(20));
    }
    fetch_all(&silk, 80);
    silk.linux_saw_nothing();
}

#[test]
fn by_deadlines() {
    let reserve = "reserve = { budget = \"200us\", period = \"10ms\" }";
    for policy in ["edf", "deadline-workahead"] {
        let classes = classes(&format!("delay = \"1ms\"\n{reserve}"), "delay = \"50ms\"");
        serves(&format!("[scheduler]\npolicy = \"{policy}\"\n\n{classes}"));
    }
}

#[test]
fn by_shares_and_reservations() {
    let reserve = "reserve = { budget = \"1ms\", period = \"10ms\" }\nimportant = true";
    serves(&format!("[scheduler]\npolicy = \"wfq\"\n\n{}", classes("weight = 5", "weight = 1")));
    serves(&format!("[scheduler]\npolicy = \"bert\"\nlinux_share = \"30%\"\n\n{}", classes(reserve, "")));
}

#[test]
fn by_several_policies_beside_each_other() {
    let policies = "[[policy]]\nname = \"soon\"\nkind = \"edf\"\nshare = \"40%\"\n\n\
                    [[policy]]\nname = \"fair\"\nkind = \"wfq\"\nshare = \"60%\"\n";
    let classes = classes("policy = \"soon\"\ndelay = \"1ms\"", "policy = \"fair\"");
    serves(&format!("{policies}\n{classes}"));
}
