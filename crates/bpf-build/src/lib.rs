//! For build scripts: compiles a program for the kernel's virtual machine. It needs clang with the BPF target and
//! libbpf's headers, which Debian has as `clang` and `libbpf-dev`. Never a part of what runs.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles `source` (`NAME.bpf.c`) to `NAME.bpf.o` in the crate's `OUT_DIR`, and has cargo do it again when something in `watched`
/// changes.
///
/// # Panics
/// Where it cannot: the build ends with what is missing.
pub fn compile(source: &str, watched: &str) {
    println!("cargo::rerun-if-changed={watched}");
    println!("cargo::rerun-if-env-changed=CLANG");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let name = Path::new(source).with_extension("o");
    let arch = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets CARGO_CFG_TARGET_ARCH");
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let built = Command::new(&clang)
        .args(["-O2", "-g", "-Wall", "-Wextra", "-Werror", "-target", "bpf", "-mcpu=v3"])
        // Where Debian keeps the kernel's headers that differ by machine.
        .arg(format!("-I/usr/include/{arch}-linux-gnu"))
        .args(["-c", source, "-o"])
        .arg(out.join(name.file_name().expect("a source has a name")))
        .status();
    match built {
        Ok(status) if status.success() => {}
        Ok(_) => panic!("{clang} could not compile {source}; is libbpf-dev installed?"),
        Err(error) => panic!("could not run {clang}: {error}; install clang and libbpf-dev"),
    }
}
