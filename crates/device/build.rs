//! Compiles the classifier program for the kernel's virtual machine. It needs clang with the
//! BPF target and libbpf's headers, which Debian has as `clang` and `libbpf-dev`.

use std::env;
use std::path::PathBuf;
use std::process::Command;

const SOURCE: &str = "src/bpf/classifier.bpf.c";

fn main() {
    println!("cargo::rerun-if-changed=src/bpf");
    println!("cargo::rerun-if-env-changed=CLANG");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("classifier.bpf.o");
    let arch = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets CARGO_CFG_TARGET_ARCH");
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let built = Command::new(&clang)
        .args(["-O2", "-g", "-Wall", "-Wextra", "-Werror", "-target", "bpf", "-mcpu=v3"])
        // Where Debian keeps the kernel's headers that differ by machine.
        .arg(format!("-I/usr/include/{arch}-linux-gnu"))
        .args(["-c", SOURCE, "-o"])
        .arg(&out)
        .status();
    match built {
        Ok(status) if status.success() => {}
        Ok(_) => panic!("{clang} could not compile {SOURCE}; is libbpf-dev installed?"),
        Err(error) => panic!("could not run {clang}: {error}; install clang and libbpf-dev"),
    }
}
