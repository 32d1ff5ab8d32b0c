//! What a caller may do.

/// Each is given by itself; `admin` has all of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Scope {
    /// Look at everything.
    Read,
    /// Submit, cancel and retry runs; work as a worker.
    Run,
    /// Declare flows, actions and limits.
    Define,
    /// Change limits, drain workers.
    Operate,
    /// Everything, tokens included.
    Admin,
}

impl Scope {
    pub const ALL: [Scope; 5] = [Scope::Read, Scope::Run, Scope::Define, Scope::Operate, Scope::Admin];

    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Read => "read",
            Scope::Run => "run",
            Scope::Define => "define",
            Scope::Operate => "operate",
            Scope::Admin => "admin",
        }
    }

    pub fn parse(text: &str) -> Option<Scope> {
        Scope::ALL.into_iter().find(|scope| scope.as_str() == text)
    }
}
