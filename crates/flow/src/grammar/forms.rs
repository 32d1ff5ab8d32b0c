//! Texts that must have a form: what it is called, and how an editor can tell.
//!
//! The expressions are a little wider than what is accepted: they must never refuse what `compile` takes.

/// A form of text.
#[derive(Debug)]
pub struct Form {
    /// As part of a sentence: "a duration".
    pub phrase: &'static str,
    pub example: &'static str,
    /// A regular expression that all such texts match, in the common part of all dialects.
    pub pattern: &'static str,
    /// A number is as good, because its digits have the form.
    pub number: bool,
}

/// Why something can fail. After a colon some say more: `exit:75`, `status:5xx`, `sql:40001`.
pub(crate) const CAUSES: [&str; 6] = ["timeout", "exit", "signal", "status", "connect", "sql"];

/// What flows, actions, pools, tags, queues and labels are called.
pub(crate) static NAME: &str = "^[A-Za-z0-9_][A-Za-z0-9_.-]*$";
pub(crate) const MAX_NAME: usize = 100;
/// What steps and inputs are called, which templates write after a dot.
pub(crate) static IDENTIFIER: &str = "^[A-Za-z_][A-Za-z0-9_]*$";
pub(crate) const MAX_IDENTIFIER: usize = 64;
pub(crate) static EXPRESSION: &str = r"^\s*\{\{[\s\S]*\}\}\s*$";

pub(crate) static DURATION: Form = Form {
    phrase: "a duration",
    example: "1h30m",
    pattern: r"^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$",
    number: false,
};

pub(crate) static WAIT: Form = Form {
    phrase: "a duration, a time or a template",
    example: "2030-01-31T08:00:00Z",
    pattern: r"(\{\{|\{%|^([0-9]+(d|h|m|s|ms))+$|^[+-]?[0-9]{4,6}-?[0-9]{2}-?[0-9]{2}[Tt ])",
    number: true,
};

pub(crate) static PAUSE: Form = Form {
    phrase: "a duration or a template",
    example: "10s",
    pattern: r"(\{\{|\{%|^([0-9]+(d|h|m|s|ms))+$)",
    number: true,
};

pub(crate) static RATIO: Form = Form {
    phrase: "starts per duration",
    example: "100/1m",
    pattern: r"^\s*\+?[0-9]+\s*/\s*([0-9]+(d|h|m|s|ms))+\s*$",
    number: false,
};

pub(crate) static QUOTIENT: Form = Form {
    phrase: "starts per `1m`, `1h`, `1d`, `1w` or `1mo`",
    example: "10000/1d",
    pattern: r"^\s*\+?[0-9]+\s*/\s*1(m|h|d|w|mo)\s*$",
    number: false,
};

pub(crate) static CAUSE: Form = Form {
    phrase: "a reason",
    example: "status:5xx",
    pattern: "^(timeout|exit|signal|status|connect|sql)(:[A-Za-z0-9]+)?$",
    number: false,
};

pub(crate) static STATUS: Form =
    Form { phrase: "a status", example: "4xx", pattern: "^[1-5][0-9x][0-9x]$", number: true };

pub(crate) static SIZE: Form =
    Form { phrase: "a size", example: "4MiB", pattern: "^[0-9]+(KiB|MiB)?$", number: true };

pub(crate) static SECRET_REFERENCE: Form = Form {
    phrase: "where the worker finds it",
    example: "env:TOKEN",
    pattern: r"^(env:[^=]+|file:[\s\S]+)$",
    number: false,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_is_in_the_form_of_causes() {
        assert!(CAUSE.pattern.starts_with(&format!("^({})", CAUSES.join("|"))));
    }
}
