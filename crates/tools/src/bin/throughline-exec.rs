//! The helper that confines and supervises the children of a program that cannot do so itself: see
//! `throughline_tools::process`.

fn main() -> std::process::ExitCode {
    throughline_tools::process::helper_main(std::env::args_os().skip(1))
}
