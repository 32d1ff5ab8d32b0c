//! Everything that can be wrong with a file: one variant a kind, a sentence, a stable code, and often help.

use crate::grammar;
use strum::{IntoStaticStr, VariantNames};
use thiserror::Error;

/// A bounded piece of text from the file, for use inside a sentence.
pub(crate) fn quoted(text: &str) -> String {
    const LONGEST: usize = 60;
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LONGEST).collect();
    if clean.len() < text.len() && text.chars().count() > LONGEST { format!("{clean}…") } else { clean }
}

#[derive(Clone, PartialEq, Eq, Debug, Error, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "kebab-case")]
#[non_exhaustive]
pub enum Problem {
    // The file as such.
    #[error("the file is {size} bytes long, more than the {limit} allowed")]
    FileTooLarge { size: usize, limit: usize },
    #[error("the file is not UTF-8 text")]
    NotUtf8,
    #[error("{message}")]
    Yaml { message: String },
    #[error("a tab cannot be used for indentation")]
    Tab,
    #[error("{what} are nested more than {limit} deep")]
    TooDeep { what: &'static str, limit: usize },
    #[error("the file stands for more than {limit} values, aliases counted each time they are used")]
    TooManyValues { limit: usize },
    #[error("YAML tags such as `{tag}` are not part of the language")]
    YamlTag { tag: String },
    #[error("a key must be plain text")]
    KeyNotText,
    #[error("a value that starts with `{{{{` must be quoted")]
    UnquotedTemplate,
    #[error("`{key}` is given twice; the first is on line {first_line}")]
    DuplicateKey { key: String, first_line: u32 },
    #[error("the file holds no document")]
    EmptyFile,
    #[error("this document is not a flow, an action, limits, pools or connections")]
    UnknownDocument,
    #[error("`{first}` and `{second}` cannot stand in one document")]
    TwoDocuments { first: &'static str, second: &'static str },

    // Fields and plain values.
    #[error("unknown field `{field}` in {place}")]
    UnknownField { field: String, place: &'static str, meant: Option<String> },
    #[error("`{what}` is not supported yet")]
    NotSupported { what: String },
    #[error("{place} needs `{field}`")]
    MissingField { field: &'static str, place: &'static str },
    #[error("`{field}` must be {expected}, not {found}")]
    WrongType { field: String, expected: &'static str, found: &'static str, help: Option<&'static str> },
    #[error("`{field}` must be between {min} and {max}")]
    OutOfRange { field: String, min: u64, max: u64 },
    #[error("`{word}` is not a value of `{field}`")]
    UnknownWord { field: String, word: String, allowed: Vec<&'static str>, meant: Option<String> },
    #[error("`{name}` cannot be the name of {what}")]
    BadName { name: String, what: &'static str, rule: &'static str },
    #[error("`{text}` is not a duration")]
    BadDuration { text: String },
    #[error("`{field}` of no time at all")]
    NoTime { field: &'static str },
    #[error("a lease of {text} is outside of what works: 1s to 1h")]
    BadLease { text: String },
    #[error("`{text}` is neither a duration nor a time")]
    BadWait { text: String },
    #[error("`{text}` is not a rate")]
    BadRate { text: String },
    #[error("there is no action `{action}`")]
    UnknownAction { action: String, meant: Option<String> },
    #[error("there is no flow `{flow}`")]
    UnknownFlow { flow: String, meant: Option<String> },
    #[error("nobody here can carry out action `{action}`: it is a function of a program")]
    NobodysFunction { action: String },
    #[error("a value cannot be put into a script")]
    TemplateInScript,
    #[error("a value cannot be put into a statement")]
    TemplateInQuery,
    #[error("there is no statement")]
    NoStatement,
    #[error("there is no connection `{connection}`")]
    UnknownConnection { connection: String, meant: Option<String> },
    #[error("`{url}` is not the address of a database")]
    BadDatabase { url: String, rule: &'static str },
    #[error("`{text}` is not a reference to a secret")]
    BadSecret { text: String },
    #[error("`{url}` cannot be called")]
    BadUrl { url: String, rule: &'static str },
    #[error("`{first}` and `{second}` both say {what}")]
    SaidTwice { first: String, second: String, what: &'static str },
    #[error("`{text}` is not a size")]
    BadSize { text: String },
    #[error("`{text}` is not a status")]
    BadStatus { text: String },
    #[error("`{text}` is not a reason to try again")]
    BadCause { text: String, meant: Option<String> },
    #[error("`{text}` is not a quota")]
    BadQuota { text: String },
    #[error("`{zone}` is not a time zone")]
    BadZone { zone: String },
    #[error("`{pattern}` is not a pattern of action names")]
    BadPattern { pattern: String },
    #[error("{what} `{name}` is declared twice; the first is in {first}")]
    DeclaredTwice { what: &'static str, name: String, first: String },

    // Packs.
    #[error("pack `{pack}` cannot define `{name}`")]
    WrongPack { name: String, pack: String },
    #[error("`{what}` cannot be declared in a pack")]
    CapacityInPack { what: String },

    // Inputs.
    #[error("the default of input `{input}` must be {expected}, not {found}")]
    BadDefault { input: String, expected: &'static str, found: &'static str },
    #[error("input `{input}` is required and has a default")]
    RequiredWithDefault { input: String },

    // Steps.
    #[error("a flow needs at least one step")]
    NoSteps,
    #[error("there is nothing to run")]
    NoProgram,
    #[error("{what} `{name}` does nothing")]
    NoWork { what: &'static str, name: String },
    #[error("{what} `{name}` does two things, `{first}` and `{second}`")]
    TwoWorks { what: &'static str, name: String, first: String, second: String },
    #[error("`{field}` does not belong to {kind}")]
    WrongPlace { field: String, kind: &'static str },
    #[error("`{field}` needs a loop, and step `{step}` has none")]
    NeedsLoop { field: &'static str, step: String },
    #[error("a step loops over `with_items` or over `cursor`, not both")]
    TwoLoops,
    #[error("`wait` cannot be done for each item of a loop")]
    LoopOverWait,
    #[error("there is no step `{step}`")]
    UnknownStep { step: String, meant: Option<String> },
    #[error("{callee} has no input `{input}`")]
    NotAnInput { callee: String, input: String, meant: Option<String> },
    #[error("{callee} needs input `{input}`")]
    InputMissing { callee: String, input: String },
    #[error("input `{input}` of {callee} must be {expected}, not {found}")]
    WrongInput { callee: String, input: String, expected: &'static str, found: &'static str },
    #[error("a flow would call itself for ever: {}", path.join(" → "))]
    EndlessCalls { path: Vec<String> },
    #[error("`after` goes round in a circle: {}", path.join(" → "))]
    Cycle { path: Vec<String> },
    #[error("`{work}` cannot be a member of a chain")]
    NotInChain { work: &'static str },
    #[error("a pause of {text} is too long here: a slot of the worker is held meanwhile")]
    PauseTooLong { text: String },
    #[error("there is no pool `{pool}`")]
    UnknownPool { pool: String, meant: Option<String> },
    #[error("{demand} of pool `{pool}` can never be had: it has {slots}")]
    PoolTooSmall { pool: String, demand: u32, slots: u32 },

    // Templates.
    #[error("template: {message}")]
    TemplateSyntax { message: String },
    #[error("an expression has more than {limit} words and signs")]
    TemplateTooLong { limit: usize },
    #[error("`{field}` must be exactly one `{{{{ expression }}}}`")]
    NotOneExpression { field: &'static str },
    #[error("`{{% {statement} %}}` cannot be used in a template")]
    TemplateStatement { statement: String },
    #[error("there is no input `{input}`")]
    UnknownInput { input: String, meant: Option<String> },
    #[error("there is no variable `{name}`")]
    UnknownVariable { name: String, meant: Option<String> },
    #[error("`{of}` has no `{name}`")]
    NoSuchOutput { of: String, name: String, meant: Option<String>, known: String },
    #[error("there is no filter `{name}`")]
    UnknownFilter { name: String },
    #[error("there is no test `{name}`")]
    UnknownTest { name: String },
    #[error("`{name}` exists only inside a loop")]
    OnlyInLoops { name: String, help: &'static str },
    #[error("member `{member}` has not ended when this is rendered")]
    NotYet { member: String },
    #[error("`{root}` must be followed by a name that is written out")]
    NotNamed { root: &'static str },
    #[error("`steps` cannot be used here: this is rendered before any step has run")]
    TooEarly,
    #[error("step `{other}` may not have ended when step `{step}` needs it")]
    NotAfter { step: String, other: String },
    #[error("step `{step}` cannot use its own result")]
    OwnResult { step: String },
}

impl Problem {
    /// A stable word for machines and for searching.
    pub fn code(&self) -> &'static str {
        self.into()
    }

    /// What to do about it, if that can be said.
    pub fn help(&self) -> Option<String> {
        self.meant()
            .map(did_you_mean)
            .or_else(|| self.proposal())
            .or_else(|| self.advice().map(str::to_owned))
    }

    /// What was probably meant.
    fn meant(&self) -> Option<&str> {
        use Problem::*;
        match self {
            UnknownField { meant, .. }
            | UnknownStep { meant, .. }
            | NotAnInput { meant, .. }
            | UnknownVariable { meant, .. }
            | UnknownWord { meant, .. }
            | UnknownAction { meant, .. }
            | UnknownFlow { meant, .. }
            | UnknownPool { meant, .. }
            | UnknownConnection { meant, .. }
            | UnknownInput { meant, .. }
            | NoSuchOutput { meant, .. }
            | BadCause { meant, .. } => meant.as_deref(),
            _ => None,
        }
    }

    /// What to write, with the names of the file.
    fn proposal(&self) -> Option<String> {
        use Problem::*;
        Some(match self {
            UnknownWord { allowed, .. } => format!("use one of {}", list(allowed)),
            UnknownAction { action, .. } => {
                format!("declare it in a document of its own: `action: {action}`")
            }
            UnknownFlow { flow, .. } => format!("declare it in a document of its own: `flow: {flow}`"),
            UnknownPool { pool, .. } => {
                format!("declare it in a `pools:` document: `{pool}: {{ slots: 1 }}`")
            }
            UnknownConnection { connection, .. } => {
                format!("declare it in a `connections:` document: `{connection}: {{ url: … }}`")
            }
            UnknownInput { input, .. } => {
                format!("declare it under `inputs:`: `{input}: {{ type: string }}`")
            }
            NoWork { what, .. } => {
                let works = match *what {
                    "member" => grammar::MEMBER.one_of,
                    "action" => grammar::ACTION.one_of,
                    _ => grammar::STEP.one_of,
                };
                format!("give it one of {}", list(works))
            }
            InputMissing { input, .. } => format!("give it under `inputs:` of the step: `{input}: …`"),
            WrongPack { name, pack } => {
                let name = name.split_once('.').map_or(name.as_str(), |(_, name)| name);
                format!("what it defines is called `{name}` or `{pack}.{name}`, which means the same")
            }
            WrongInput { expected: "text", .. } => "put it in quotes".to_owned(),
            NoSuchOutput { known, .. } if known.is_empty() => {
                "the flow gives nothing back: say what under its `outputs:`".to_owned()
            }
            NoSuchOutput { known, .. } => format!("it has {known}"),
            NotAfter { step, other } => format!("add `{other}` to `after` of step `{step}`"),
            _ => return None,
        })
    }

    fn advice(&self) -> Option<&'static str> {
        use Problem::*;
        Some(match self {
            NobodysFunction { .. } => {
                "say what it does, with `run`, `shell`, `http`, `sql` or `do`; programs that have functions use the library"
            }
            BadCause { .. } => {
                "write `timeout`, `connect`, `exit:75`, `signal:9`, `status:503`, `status:5xx` or `sql:40001`"
            }
            WrongType { help, .. } => (*help)?,
            BadName { rule, .. } | BadUrl { rule, .. } | BadDatabase { rule, .. } => rule,
            UnquotedTemplate => "write it like \"{{ inputs.items }}\": YAML reads a bare `{` as an object",
            Tab => "indent with spaces",
            NoProgram => "write `run: [echo, hello]`, a program and its arguments, or `shell: echo hello`",
            TwoDocuments { .. } => "put `---` on a line between them",
            UnknownDocument => {
                "a document starts with `flow:`, `action:`, `limits:`, `pools:` or `connections:`"
            }
            BadLease { .. } => {
                "it is how long a worker that has gone silent keeps its units; without one they are kept 30s"
            }
            BadDuration { .. } => "write it like `200ms`, `30s`, `5m`, `2h`, `1d` or `1h30m`",
            NoTime { .. } => "nothing could ever be in time: write a duration such as `30s`, or leave it out",
            BadWait { .. } => "write it like `30s`, `1h30m`, `2030-01-31T08:00:00Z`, or as a template",
            BadRate { .. } => "write it like `100/1m`: starts, a slash, and a duration",
            BadQuota { .. } => "write it like `10000/1d`; the window is `1m`, `1h`, `1d`, `1w` or `1mo`",
            BadZone { .. } => "use a name such as `UTC` or `Europe/Berlin`",
            BadPattern { .. } => "write a name such as `billing.charge`, perhaps with a final `*`",
            RequiredWithDefault { .. } | SaidTwice { .. } => "keep one of the two",
            BadSize { .. } => "write it like `64KiB` or `4MiB`; without a unit, it is in bytes",
            BadStatus { .. } => "write it like `404`, or `4xx` for all that are alike",
            TemplateInScript => "give it to the script under `env:`, and write \"$NAME\" in the script",
            TemplateInQuery => {
                "write `$1` in the statement (`?` for MySQL and MariaDB), and put the value under `params`"
            }
            EndlessCalls { .. } => "give one of these steps a `when`, so that it ends some time",
            NoStatement => "write it like `query: select 1`",
            CapacityInPack { .. } => {
                "a pack says what it needs; what there is stands in `tidegate.yaml`, beside the folder `packs`"
            }
            BadSecret { .. } => "write `env:NAME` or `file:PATH`; workers look it up when they need it",
            TwoWorks { what: "member", .. } => "make two members of it",
            TwoWorks { what: "action", .. } => "make two actions of it",
            TwoWorks { .. } => "make two steps of it",
            NotInChain { .. } => "it has limits of its own, which only a step can wait for",
            PauseTooLong { .. } => {
                "at most 1m; a `wait` step, or `retry` of the step, waits longer and holds nothing"
            }
            NotYet { .. } => "a member sees those before it; `while` sees the round that has just ended",
            LoopOverWait => {
                "one `wait` step before or after the loop pauses once; `rate` of an action paces the items"
            }
            NeedsLoop { .. } => "add `with_items`, or remove the field",
            TemplateSyntax { .. } => "braces that are not a template go between {% raw %} and {% endraw %}",
            NotOneExpression { .. } => "write it like \"{{ inputs.items }}\", with nothing around it",
            TemplateStatement { .. } => "`if` and `for` can; `for` at most four deep",
            OnlyInLoops { help, .. } => help,
            NotNamed { .. } => "write it like `steps.fetch.output` or `run.id`",
            OwnResult { .. } => "only steps in `after` can be used",
            _ => return None,
        })
    }
}

fn did_you_mean(word: impl AsRef<str>) -> String {
    format!("did you mean `{}`?", word.as_ref())
}

pub(crate) fn list(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}
