//! What is known about a value before there is one.

use std::collections::BTreeMap;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) enum Outline {
    #[default]
    Anything,
    /// An object that has these fields, or some of them, and no others.
    Object(BTreeMap<String, Outline>),
}

impl Outline {
    /// An object whose fields can be anything.
    pub fn of(fields: &[&str]) -> Outline {
        Outline::Object(fields.iter().map(|field| ((*field).to_owned(), Outline::Anything)).collect())
    }

    /// The same with one more field, if it is an object.
    pub fn with(mut self, field: &str, outline: Outline) -> Outline {
        if let Outline::Object(fields) = &mut self {
            fields.insert(field.to_owned(), outline);
        }
        self
    }

    /// How far `path` leads to something that there can be: the length of its part before the first name that is
    /// nowhere, and the names that are there instead.
    pub fn stray<'s>(&'s self, path: &[String]) -> Option<(usize, Vec<&'s str>)> {
        let mut outline = self;
        for (at, name) in path.iter().enumerate() {
            let Outline::Object(fields) = outline else { return None };
            match fields.get(name) {
                Some(inner) => outline = inner,
                None => return Some((at, fields.keys().map(String::as_str).collect())),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_followed_as_far_as_anything_is_known() {
        let path = |text: &str| text.split('.').map(str::to_owned).collect::<Vec<_>>();
        let page = Outline::of(&["state"]).with("output", Outline::of(&["body", "status"]));
        let chain = Outline::Object([("page".to_owned(), page)].into());
        assert_eq!(
            chain.stray(&path("page.output.body.orders.first")),
            None,
            "what is in a body nobody knows"
        );
        assert_eq!(chain.stray(&path("page.output.bdy.orders")), Some((2, vec!["body", "status"])));
        assert_eq!(chain.stray(&path("pages")), Some((0, vec!["page"])));
        assert_eq!(Outline::Anything.with("rounds", Outline::Anything).stray(&path("any.thing")), None);
    }
}
