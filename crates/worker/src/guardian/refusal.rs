//! Why a process could not be started, as a sentence for the person who wrote the order.

use super::wire::Spawn;
use std::io;
use std::path::Path;

pub(super) fn explain(order: &Spawn, error: &io::Error) -> String {
    let program = order.argv.first().map_or("", String::as_str);
    format!("cannot start `{program}`: {}", reason(order, program, error))
}

fn reason(order: &Spawn, program: &str, error: &io::Error) -> String {
    // The kernel gives the same answer for a missing program and a missing directory.
    if let Some(cwd) = &order.cwd
        && !Path::new(cwd).is_dir()
    {
        return format!("its working directory `{cwd}` is not there or is not a directory");
    }
    let place = order.cwd.as_deref().map_or_else(|| program.into(), |cwd| Path::new(cwd).join(program));
    match error.kind() {
        io::ErrorKind::NotFound if !program.contains('/') => "no such program in PATH".into(),
        io::ErrorKind::NotFound if place.exists() => {
            "the interpreter that its first line names is not there".into()
        }
        io::ErrorKind::NotFound => "no such file".into(),
        io::ErrorKind::PermissionDenied => "it may not be executed".into(),
        io::ErrorKind::ArgumentListTooLong => "its arguments and environment are too long".into(),
        io::ErrorKind::InvalidInput => "an argument or variable holds a zero byte".into(),
        _ if error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) => {
            "it is neither a program nor a script that begins with `#!`".into()
        }
        _ => error.to_string(),
    }
}
