//! Compiles the program that chooses queues for the kernel's virtual machine, as the device crate does its own.

use std::env;
use std::path::PathBuf;
use std::process::Command;

const SOURCE: &str = "src/flow_steering.bpf.c";

fn main() {
    println!("cargo::rerun-if-changed={SOURCE}");
    println!("cargo::rerun-if-env-changed=CLANG");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("flow_steering.bpf.o");
    let arch = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets CARGO_CFG_TARGET_ARCH");
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let built = Command::new(&clang)
        .args(["-O2", "-g", "-Wall", "-Wextra", "-Werror", "-target", "bpf", "-mcpu=v3"])
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
