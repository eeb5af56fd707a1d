//! Compiles the program that chooses queues for the kernel's virtual machine.

fn main() {
    let source = "src/flow_steering.bpf.c";
    silk_bpf_build::compile(source, source);
}
