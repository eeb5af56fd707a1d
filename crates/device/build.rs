//! Compiles the classifier for the kernel's virtual machine.

fn main() {
    silk_bpf_build::compile("src/bpf/classifier.bpf.c", "src/bpf");
}
