//! The command as people use it: what it prints, where, and its exit status. The daemon of
//! these tests is a thread that answers what it is told to.

use silk_control::{Lifeline, PathReport, Refusal, Reply, Report, Request};
use silk_testkit::netns::{Host, Rig};
use socket2::{Domain, SockAddr, Socket, Type};
use std::fs::{File, Permissions};
use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

fn silk(arguments: &[&str]) -> Output {
    run(arguments, Path::new("/nonexistent/control.sock"))
}

fn run(arguments: &[&str], socket: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_silk"))
        .args(arguments)
        .current_dir(root())
        .env("SILK_SOCKET", socket)
        .output()
        .unwrap()
}

/// The workspace, whose files the tests read.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn said(output: &Output) -> (i32, &str, &str) {
    let text = |bytes| std::str::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

/// Listens at a socket of its own and gives these replies to the first request.
fn daemon(replies: Vec<Reply>) -> (tempfile::TempDir, PathBuf, JoinHandle<Request>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("control.sock");
    let listener = Socket::new(Domain::UNIX, Type::SEQPACKET, None).unwrap();
    listener.bind(&SockAddr::unix(&path).unwrap()).unwrap();
    listener.listen(1).unwrap();
    // A command that never comes fails the test instead of holding it up.
    listener.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let thread = thread::spawn(move || {
        let (client, _) = listener.accept().unwrap();
        let lifeline = Lifeline::from_descriptor(OwnedFd::from(client));
        let request = lifeline.receive::<Request>().unwrap().message;
        replies.iter().for_each(|reply| lifeline.send(reply, &[]).unwrap());
        request
    });
    (folder, path, thread)
}

#[test]
fn files_that_are_right_are_described_and_the_status_is_0() {
    let output = silk(&["check", "crates/config/tests/good/issue.toml", "graphs/web.toml"]);
    let expected = "\
crates/config/tests/good/issue.toml: a configuration without a fault: xdp on eth0, fixed-priority, classes preferred, standard
graphs/web.toml: a graph of 14 modules and 19 links, without a fault
";
    assert_eq!(said(&output), (0, expected, ""));
}

#[test]
fn every_fault_of_every_file_is_told_and_the_status_is_2() {
    let faults = "crates/config/tests/faults/";
    let files = [format!("{faults}two-defaults.toml"), "missing".into(), format!("{faults}memory.toml")];
    let output = silk(&["check", &files[0], &files[1], &files[2]]);
    let (status, out, err) = said(&output);
    assert_eq!((status, out), (2, ""));
    for line in [
        "two-defaults.toml:10:11: only one class can be the default",
        "2 faults in crates/config/tests/faults/two-defaults.toml; nothing was applied",
        "1 fault in crates/config/tests/faults/memory.toml; nothing was applied",
        "silk: there is no file `missing`",
    ] {
        assert!(err.contains(line), "{err}");
    }
    assert!(!err.contains('\x1b'));
}

#[test]
fn a_graph_is_checked_against_the_modules_there_are() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("graph.toml");
    let text = std::fs::read_to_string(root().join("graphs/echo.toml")).unwrap();
    std::fs::write(&file, text.replace("ip.res -> arp.res", "ip.res -> arp.down").replace("port", "prot"))
        .unwrap();
    let output = silk(&["check", file.to_str().unwrap()]);
    let (status, _, err) = said(&output);
    assert_eq!(status, 2);
    assert!(err.contains("a service of type resolve (client) cannot be linked to one of type net"), "{err}");
    assert!(err.contains("there is no parameter `prot`") && err.contains("did you mean `port`?"), "{err}");
}

#[test]
fn the_graph_a_configuration_names_is_checked_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let (file, graph) = (folder.path().join("silk.toml"), folder.path().join("graph.toml"));
    std::fs::write(&file, format!("graph = {graph:?}\n[device]\ninterface = \"eth0\"\n")).unwrap();
    let missing = silk(&["check", file.to_str().unwrap()]);
    let (status, _, err) = said(&missing);
    let why =
        format!("silk: there is no file `{}`; `{}` names it as its graph\n", graph.display(), file.display());
    assert_eq!((status, err), (1, &*why));
    std::fs::write(&graph, "[[module]]\nname = \"eht\"\n").unwrap();
    let wrong = silk(&["check", file.to_str().unwrap()]);
    let (status, out, err) = said(&wrong);
    assert_eq!(status, 2);
    assert!(
        out.contains("silk.toml: a configuration without a fault") && err.contains("did you mean `eth`?"),
        "{err}"
    );
}

#[test]
fn a_graph_names_no_device_that_its_configuration_has_not() {
    let folder = tempfile::tempdir().unwrap();
    let (file, graph) = (folder.path().join("silk.toml"), folder.path().join("graph.toml"));
    let text = std::fs::read_to_string(root().join("graphs/web.toml")).unwrap();
    let told = |devices: &str, number: &str| {
        std::fs::write(&file, format!("graph = {graph:?}\n{devices}")).unwrap();
        let named = text.replace("name = \"vnet\"", &format!("name = \"vnet\"\ndevice = {number}"));
        assert_ne!(named, text);
        std::fs::write(&graph, named).unwrap();
        let output = silk(&["check", file.to_str().unwrap()]);
        let (status, _, err) = said(&output);
        (status, err.to_owned())
    };
    let one = "[device]\ninterface = \"eth0\"\n";
    assert_eq!(told(one, "0"), (0, String::new()));
    let (status, err) = told(one, "1");
    assert_eq!(status, 2);
    assert!(err.contains("the configuration has no device 1") && err.contains("leave `device` out"), "{err}");
    let (status, err) = told("[[device]]\ninterface = \"eth0\"\n[[device]]\ninterface = \"eth1\"\n", "0");
    assert_eq!(status, 2);
    assert!(err.contains("has several devices, and a `vnet` stands for all of them"), "{err}");
}

/// Two that name each other would be checked for ever.
#[test]
fn a_configuration_that_is_named_as_a_graph_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let [one, other] = ["one.toml", "other.toml"].map(|name| folder.path().join(name));
    let write = |file: &PathBuf, graph: &PathBuf| {
        std::fs::write(file, format!("graph = {graph:?}\n[device]\ninterface = \"eth0\"\n")).unwrap();
    };
    let is_refused = |file: &PathBuf| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_silk"));
        let mut child =
            command.arg("check").arg(file).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().take(2).count();
        if lines > 1 {
            // It would never end.
            child.kill().unwrap();
        }
        let output = child.wait_with_output().unwrap();
        let (status, _, err) = said(&output);
        assert_eq!((status, lines), (2, 1), "{err}");
        assert!(err.contains("there are no modules") && err.contains("unknown key `device`"), "{err}");
    };
    write(&one, &one);
    is_refused(&one);
    write(&one, &other);
    write(&other, &one);
    is_refused(&one);
}

#[test]
fn the_graph_a_configuration_names_is_one_that_the_daemon_builds() {
    let folder = tempfile::tempdir().unwrap();
    let (file, graph) = (folder.path().join("silk.toml"), folder.path().join("graph.toml"));
    std::fs::write(&file, format!("graph = {graph:?}\n[device]\ninterface = \"eth0\"\n")).unwrap();
    std::fs::copy(root().join("graphs/video.toml"), &graph).unwrap();
    let check = |file: &Path| {
        let output = silk(&["check", file.to_str().unwrap()]);
        let (status, _, err) = said(&output);
        (status, err.to_owned())
    };
    assert_eq!(check(&graph), (0, String::new()));
    let (status, err) = check(&file);
    assert!(status == 2 && err.contains("there is no module of kind `mpeg`"), "{err}");
    let text = std::fs::read_to_string(root().join("graphs/echo.toml")).unwrap();
    std::fs::write(&graph, format!("{text}\n[[path]]\nname = \"it\"\nmodule = \"udp\"\ncolour = 7\n"))
        .unwrap();
    let (status, err) = check(&file);
    assert!(status == 2 && err.contains("unknown key `colour` in [[path]]"), "{err}");
}

#[test]
fn a_file_that_cannot_be_read_is_no_fault_of_its_contents() {
    assert_eq!(said(&silk(&["check", "missing"])), (1, "", "silk: there is no file `missing`\n"));
    let (status, _, err) = {
        let output = silk(&["check", "graphs"]);
        let (status, out, err) = said(&output);
        (status, out.to_owned(), err.to_owned())
    };
    assert_eq!((status, err.contains("`graphs` cannot be read")), (1, true));
}

/// It is there and can be read: what is in it is at fault, and stays so.
#[test]
fn a_file_that_is_no_text_or_too_long_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("silk.toml");
    for (bytes, why) in
        [(b"interface = \"\xff\"".to_vec(), "is not text: byte 13"), (vec![b'#'; 70_000], "is longer than")]
    {
        std::fs::write(&file, bytes).unwrap();
        let output = silk(&["check", file.to_str().unwrap()]);
        let (status, out, err) = said(&output);
        assert_eq!((status, out, err.contains(why)), (2, "", true), "{err}");
    }
}

#[test]
fn the_graph_of_a_server_is_drawn_as_text() {
    let expected = "\
socket
    stream - tcp.up
    net - udp.up
    host - host.up
    host_net - host.net
icmp
    down - ip.up
icmp6
    down - ip6.up
udp
    down - ip.up
    down6 - ip6.up
tcp
    down - ip.up
    down6 - ip6.up
ip
    res - arp.res
    down - eth.up
ip6
    res - nd.res
    down - eth.up
arp
    down - eth.up
nd
    down - eth.up
igmp
    down - eth.up
mld
    down - eth.up
eth
    down - vnet.up
vnet
host
";
    assert_eq!(said(&silk(&["graph", "graphs/web.toml"])), (0, expected, ""));
}

#[test]
fn a_configuration_is_no_graph_and_that_is_told_in_a_sentence() {
    let output = silk(&["graph", "packaging/silk.toml"]);
    let (status, out, err) = said(&output);
    assert_eq!((status, out, err.lines().count()), (2, "", 1));
    assert!(err.starts_with("silk: `packaging/silk.toml` is a configuration and no graph"), "{err}");
    let wrong = "crates/config/tests/faults/two-defaults.toml";
    let output = silk(&["graph", wrong]);
    let (status, out, err) = said(&output);
    assert_eq!((status, out, err.lines().count()), (2, "", 1));
    assert!(err.starts_with(&format!("silk: `{wrong}` is a configuration and no graph")), "{err}");
}

#[test]
fn what_a_check_or_a_reload_says_and_finds_no_room_for_is_an_error() {
    let full = |arguments: &[&str], socket: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_silk"));
        let command = command.args(arguments).current_dir(root()).env("SILK_SOCKET", socket);
        let out = File::options().write(true).open("/dev/full").unwrap();
        command.stdout(out).stderr(Stdio::piped()).output().unwrap()
    };
    let why = "silk: standard output cannot be written: No space left on device (os error 28)\n";
    let (right, nowhere) = ("crates/config/tests/good/issue.toml", Path::new("/nonexistent/control.sock"));
    assert_eq!(said(&full(&["check", right], nowhere)), (1, "", why));
    let wrong = full(&["check", right, "crates/config/tests/faults/memory.toml"], nowhere);
    assert_eq!(wrong.status.code(), Some(2));
    let nothing = Reply::Reloaded { applied: Vec::new(), restart: Vec::new() };
    let (_folder, socket, daemon) = daemon(vec![nothing]);
    assert_eq!(said(&full(&["reload"], &socket)), (1, "", why));
    assert_eq!(daemon.join().unwrap(), Request::Reload);
}

#[test]
fn a_drawing_that_finds_no_room_is_an_error_and_a_reader_that_has_seen_enough_is_none() {
    let drawn = |out: Stdio| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_silk"));
        let command = command.args(["graph", "graphs/web.toml"]).current_dir(root());
        command.stdout(out).stderr(Stdio::piped()).output().unwrap()
    };
    let full = drawn(File::options().write(true).open("/dev/full").unwrap().into());
    let why = "silk: standard output cannot be written: No space left on device (os error 28)\n";
    assert_eq!(said(&full), (1, "", why));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    assert_eq!(said(&drawn(writer.into())), (0, "", ""));
}

#[test]
fn live_paths_are_drawn_into_the_graph() {
    let path = |class: &str| PathReport {
        class: class.to_owned(),
        modules: ["vnet", "eth", "ip", "tcp", "socket"].map(str::to_owned).to_vec(),
        ..PathReport::default()
    };
    let part = |paths| Box::new(Report { paths, ..Report::default() });
    let (_folder, socket, daemon) = daemon(vec![
        Reply::Report { part: part(vec![path("preferred"), path("standard")]), more: true },
        Reply::Report { part: part(vec![path("standard")]), more: false },
    ]);
    let output = run(&["graph", "graphs/web.toml", "--live"], &socket);
    assert_eq!(daemon.join().unwrap(), Request::Report);
    let (status, out, err) = said(&output);
    assert_eq!((status, err), (0, ""));
    assert!(out.ends_with(
        "\n2 paths of class standard: vnet eth ip tcp socket\n1 path of class preferred: vnet eth ip tcp socket\n"
    ));
}

#[test]
fn the_parts_of_a_report_are_one_to_people_and_to_programs() {
    let path = |class: &str| PathReport { class: class.to_owned(), ..PathReport::default() };
    let part = |class| {
        Box::new(Report { paths: vec![path(class)], arena_bytes: 10, arena_used: 4, ..Report::default() })
    };
    let parts = || {
        vec![
            Reply::Report { part: part("gold"), more: true },
            Reply::Report { part: part("rest"), more: false },
        ]
    };
    let (_folder, socket, thread) = daemon(parts());
    let output = run(&["paths", "--json"], &socket);
    assert_eq!(thread.join().unwrap(), Request::Report);
    let (status, json, _) = said(&output);
    let read: Report = serde_json::from_str(json).unwrap();
    let paths = vec![path("gold"), path("rest")];
    let whole = Report { paths, arena_bytes: 20, arena_used: 8, ..Report::default() };
    assert_eq!((status, read), (0, whole));

    let (_folder, socket, thread) = daemon(parts());
    let output = run(&["paths"], &socket);
    thread.join().unwrap();
    assert!(said(&output).1.ends_with("\n2 paths, 0 charged to them, 20 in rings (8 of memory)\n"));
}

#[test]
fn who_watches_is_told_that_the_daemon_has_ended() {
    let report = || Reply::Report { part: Box::default(), more: false };
    for removed in [false, true] {
        let (folder, socket, thread) = daemon(vec![report()]);
        let mut command = Command::new(env!("CARGO_BIN_EXE_silk"));
        let command = command.args(["paths", "--watch"]).env("SILK_SOCKET", &socket);
        let watching = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // It answers once, and its socket is closed.
        thread.join().unwrap();
        let place = socket.display().to_string();
        let _there = (!removed).then_some(folder);
        let output = watching.wait_with_output().unwrap();
        let (status, out, err) = said(&output);
        assert_eq!((status, err), (1, &*format!("silk: the daemon at {place} has ended\n")));
        assert_eq!(out.matches("0 paths").count(), 1, "{out}");
    }
}

#[test]
fn a_reload_tells_what_took_effect_and_what_needs_a_restart() {
    let (_folder, socket, daemon) = daemon(vec![Reply::Reloaded {
        applied: vec!["class preferred".into()],
        restart: vec!["device.interface".into()],
    }]);
    let output = run(&["reload"], &socket);
    assert_eq!(daemon.join().unwrap(), Request::Reload);
    let expected = "applied: class preferred\nneeds a restart of the daemon: device.interface\n";
    assert_eq!(said(&output), (0, expected, ""));
}

#[test]
fn a_refused_reload_says_why_and_the_status_is_2_where_the_file_is_at_fault() {
    let faults = ("2 faults in silk.toml; nothing was applied", 22, 2);
    let unreadable = ("silk.toml cannot be read: Permission denied", 5, 1);
    for (why, errno, status) in [faults, unreadable] {
        let (_folder, socket, daemon) = daemon(vec![Reply::Refused(Refusal { errno, why: why.into() })]);
        let output = run(&["reload"], &socket);
        daemon.join().unwrap();
        assert_eq!(said(&output), (status, "", &*format!("silk: the daemon refused: {why}\n")));
    }
}

/// A file that is preloaded in place of the library: `libc` itself does no harm.
fn harmless() -> PathBuf {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let libc =
        maps.lines().filter_map(|line| line.split_whitespace().last()).find(|file| file.contains("libc.so"));
    libc.unwrap().into()
}

#[test]
fn a_program_is_run_in_a_family_of_its_own_and_keeps_its_exit_status() {
    let (_folder, socket, daemon) = daemon(vec![Reply::Family { family: 77 }]);
    let script = "echo $SILK_FAMILY $SILK_SOCKET $SILK_STRICT $LD_PRELOAD $0 $1; ls -l /proc/self/fd | grep -c socket: ; exit 7";
    let library = harmless();
    let output = run(
        &[
            "run",
            "--strict",
            "--library",
            library.to_str().unwrap(),
            "--",
            "sh",
            "-c",
            script,
            "zero",
            "--one",
        ],
        &socket,
    );
    assert_eq!(daemon.join().unwrap(), Request::Found);
    let library = library.canonicalize().unwrap();
    let expected = format!("77 {} 1 {} zero --one\n1\n", socket.display(), library.display());
    assert_eq!(said(&output), (7, &*expected, ""));
}

#[test]
fn what_else_is_preloaded_comes_first_as_it_would_before_the_c_library() {
    let (_folder, socket, daemon) = daemon(vec![Reply::Family { family: 77 }]);
    let library = harmless().canonicalize().unwrap();
    let library = library.to_str().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_silk"));
    command.args(["run", "--library", library, "--", "printenv", "LD_PRELOAD"]);
    let output = command.env("SILK_SOCKET", &socket).env("LD_PRELOAD", "libm.so.6").output().unwrap();
    assert_eq!(said(&output), (0, &*format!("libm.so.6:{library}\n"), ""));
    daemon.join().unwrap();
}

/// `SIGPIPE` is number 13: the lowest bit of the mask's fourth digit from its end.
#[test]
fn what_broken_pipes_do_is_what_they_did_to_the_command_itself() {
    let (library, look) = (harmless(), "s=$(grep SigIgn /proc/self/status); s=${s%???}; echo ${s#${s%?}}");
    for (before, expected) in [("trap '' PIPE", "1"), ("trap - PIPE", "0")] {
        let (_folder, socket, daemon) = daemon(vec![Reply::Family { family: 77 }]);
        let mut command = Command::new("sh");
        // Rust's own way to start a program makes them do what is usual.
        command.args(["-c", &format!("{before}; exec \"$@\""), "sh", env!("CARGO_BIN_EXE_silk")]);
        command.args(["run", "--library", library.to_str().unwrap(), "--", "sh", "-c", look]);
        let output = command.env("SILK_SOCKET", &socket).output().unwrap();
        assert_eq!(said(&output), (0, &*format!("{expected}\n"), ""), "{before}");
        daemon.join().unwrap();
    }
}

/// A copy of `printenv` in this folder, with this mode.
fn printer(folder: &Path, mode: u32) -> PathBuf {
    let program = folder.join("printenv");
    std::fs::copy("/usr/bin/printenv", &program).unwrap();
    std::fs::set_permissions(&program, Permissions::from_mode(mode)).unwrap();
    program
}

/// The loader takes the variable away where it must preload nothing.
#[test]
fn a_set_user_id_program_of_the_callers_own_is_preloaded_and_nothing_is_said() {
    let (folder, socket, daemon) = daemon(vec![Reply::Family { family: 77 }]);
    let (program, library) = (printer(folder.path(), 0o6755), harmless().canonicalize().unwrap());
    let [program, library] = [&program, &library].map(|file| file.to_str().unwrap());
    let output = run(&["run", "--strict", "--library", library, "--", program, "LD_PRELOAD"], &socket);
    assert_eq!(said(&output), (0, &*format!("{library}\n"), ""));
    daemon.join().unwrap();
}

#[test]
fn a_set_user_id_program_of_another_user_is_told() {
    if !rustix::process::geteuid().is_root() {
        return silk_testkit::skip("giving files away needs root");
    }
    let folder = tempfile::tempdir().unwrap();
    let program = printer(folder.path(), 0o755);
    chown(&program, Some(65534), None).unwrap();
    std::fs::set_permissions(&program, Permissions::from_mode(0o4755)).unwrap();
    let (program, library) = (program.to_str().unwrap(), harmless());
    let output = silk(&["run", "--strict", "--library", library.to_str().unwrap(), "--", program]);
    let why =
        format!("silk: `{program}` runs with another user's rights, so nothing can be preloaded into it\n");
    assert_eq!(said(&output), (1, "", &*why));
}

#[test]
fn a_program_that_is_not_there_is_told_as_a_shell_would() {
    let library = harmless();
    let arguments = |program| ["run", "--library", library.to_str().unwrap(), "--", program];
    assert_eq!(
        said(&silk(&arguments("no-such-program"))),
        (127, "", "silk: there is no program `no-such-program`\n")
    );
    let output = silk(&["run", "--library", library.to_str().unwrap(), "--nonsense", "true"]);
    let (status, _, err) = said(&output);
    assert_eq!(status, 127);
    assert!(err.contains("`--nonsense`, and no such option"), "{err}");
    let without = silk(&["run", "--library", "/nonexistent/libsilk.so", "--", "true"]);
    let (status, _, err) = said(&without);
    assert_eq!(status, 1);
    assert!(err.starts_with("silk: there is no library to preload at `/nonexistent/libsilk.so`"), "{err}");
    assert_eq!(said(&silk(&arguments("true"))).0, 1);
}

#[test]
fn a_cable_to_the_interface_itself_is_a_command_line_that_is_wrong() {
    let output = silk(&["netem", "--left", "here:wan", "--right", "here:wan"]);
    let why = "silk: both sides are here:wan: the two interfaces of one namespace need two names\n";
    assert_eq!(said(&output), (2, "", why));
}

/// Without a network namespace there is none; with one, netem makes its interfaces and takes no others.
#[test]
fn a_cable_takes_no_interface_that_is_there() {
    let Some(rig) = Rig::for_test(1) else { return };
    let [server, client] = [&rig.server, &rig.client].map(Host::namespace);
    rig.server.run("ip", ["tuntap", "add", "mine", "mode", "tap"]).unwrap();
    for name in ["eth0", "mine"] {
        let output =
            silk(&["netem", "--left", &format!("{server}:{name}"), "--right", &format!("{client}:wan")]);
        let why = format!(
            "silk: {server}:{name}: there is an interface of this name already, and netem makes its own\n"
        );
        assert_eq!(said(&output), (1, "", &*why));
    }
}

#[test]
fn without_a_daemon_one_sentence_says_what_to_do() {
    let expected = "silk: no daemon listens at /nonexistent/control.sock: start `silkd --config FILE`, \
                    or name its socket in SILK_SOCKET\n";
    assert_eq!(said(&silk(&["reload"])), (1, "", expected));
}

#[test]
fn the_manual_has_every_command() {
    let output = silk(&["man"]);
    let (status, page, _) = said(&output);
    assert_eq!(status, 0);
    for command in ["run", "paths", "check", "graph", "reload", "play", "bench", "man"] {
        assert!(page.contains(&format!("silk\\-{command}(1)")), "{command}");
    }
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(said(&silk(&["man", "--into", folder.path().to_str().unwrap()])), (0, "", ""));
    assert!(folder.path().join("silk-check.1").exists());
    assert_eq!(said(&silk(&["man", "--into", "/nonexistent"])).0, 1);
}

#[test]
fn shells_are_told_how_to_complete() {
    let output = silk(&["completions", "bash"]);
    let (status, script, errors) = said(&output);
    assert_eq!((status, errors), (0, ""));
    // What bash itself makes of it.
    let asks =
        "source FILE\nCOMP_WORDS=(silk re); COMP_CWORD=1\n_silk silk re silk; echo \"${COMPREPLY[@]}\"";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("silk.bash");
    std::fs::write(&file, script).unwrap();
    let asks = asks.replace("FILE", file.to_str().unwrap());
    let bash = Command::new("bash").args(["--norc", "-c", &asks]).output().unwrap();
    assert_eq!(said(&bash), (0, "reload\n", ""));
    assert_eq!(said(&silk(&["completions", "cmd"])).0, 2);
}

/// `silk bench` starts some of its own.
#[test]
fn commands_that_are_hidden_are_not_completed() {
    for shell in ["elvish", "fish", "powershell", "zsh"] {
        let output = silk(&["completions", shell]);
        let (status, script, _) = said(&output);
        assert_eq!(status, 0);
        assert!(script.contains("TCP and UDP beside Linux"), "{shell}");
        assert!(!script.contains("Send minimum-size packets"), "{shell}");
    }
    let script = silk(&["completions", "bash"]).stdout;
    let script = String::from_utf8(script).unwrap();
    assert!(script.contains("opts=\"-h --help web paths tcp video help\""), "{script}");
}

/// A copy of the command in a folder of its own, and there a program `silk-media` that tells how it was
/// called.
///
/// Another process makes both: what is open for writing here goes along to the children that the other tests
/// start meanwhile, and until they are other programs, nobody can execute it (`ETXTBSY`).
fn beside_media() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let made = Command::new("sh")
        .args(["-ec", r#"cp "$0" silk; printf '%s\n' '#!/bin/sh' 'echo "$@"' 'exit 7' > silk-media; chmod +x silk-media"#])
        .arg(env!("CARGO_BIN_EXE_silk"))
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let command = folder.path().join("silk");
    (folder, command)
}

#[test]
fn commands_of_video_are_the_other_programs_with_all_their_arguments_and_its_status() {
    let (_folder, command) = beside_media();
    for (arguments, passed) in [
        (&["play", "--file", "a b", "--help"][..], "play --file a b --help\n"),
        (&["send", "clip.mpg", "--to", "host"], "send clip.mpg --to host\n"),
        (&["shell", "host", "list"], "shell host list\n"),
        (&["why", "-V"], "why -V\n"),
        (&["bench", "video", "--quick"], "bench video --quick\n"),
    ] {
        assert_eq!(said(&Command::new(&command).args(arguments).output().unwrap()), (7, passed, ""));
    }
}

#[test]
fn without_the_other_program_a_command_of_video_says_how_to_get_it() {
    let (folder, command) = beside_media();
    std::fs::remove_file(folder.path().join("silk-media")).unwrap();
    let output = Command::new(&command).arg("play").env("PATH", "/nonexistent").output().unwrap();
    let expected = format!(
        "silk: video needs the program `silk-media`, which is neither `{}` nor in PATH; `make build-video` builds it\n",
        folder.path().join("silk-media").display()
    );
    assert_eq!(said(&output), (1, "", expected.as_str()));
}
