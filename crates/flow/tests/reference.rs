//! The reference page has every place and field as the grammar has them. `TIDEGATE_BLESS=1` writes the tables instead.

use std::fs;
use std::path::PathBuf;
use tidegate_flow::grammar::{Field, Place, Shape, places};

fn page() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/language.md")
}

fn table(place: &Place) -> String {
    let mut table = String::from("| field | what it says | value | without it |\n|---|---|---|---|\n");
    for field in place.fields {
        let (name, about) = (field.name, about(place, field));
        let without = if field.required { "required" } else { field.default.unwrap_or_default() };
        table += &format!("| `{name}` | {about} | {} | {without} |\n", value(&field.shape));
    }
    if !place.one_of.is_empty() {
        let many = if place.needs_one { "Exactly one" } else { "At most one" };
        table += &format!("\n{many} of {}.\n", list(place.one_of));
    }
    table
}

fn about(place: &Place, field: &Field) -> String {
    let unlike = place.one_of.len() - place.one_of.iter().filter(|one| field.only_with.contains(one)).count();
    match field.only_with {
        [] => field.about.to_owned(),
        with if with.len() <= unlike + 1 => format!("{} Only with {}.", field.about, list(with)),
        with => {
            let without: Vec<&str> = place.one_of.iter().copied().filter(|one| !with.contains(one)).collect();
            format!("{} Not with {}.", field.about, list(&without))
        }
    }
}

fn list(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

fn value(shape: &Shape) -> String {
    match shape {
        Shape::Any => "anything".to_owned(),
        Shape::Template => "anything, with templates".to_owned(),
        Shape::Text => "text".to_owned(),
        Shape::Plain => "text, with templates".to_owned(),
        Shape::Expression => "one `{{ expression }}`".to_owned(),
        Shape::Flag => "`true` or `false`".to_owned(),
        Shape::Count(0, u32::MAX) => "a number".to_owned(),
        Shape::Count(min, max) => format!("a number from {min} to {max}"),
        Shape::Name => "a name".to_owned(),
        Shape::Words(words) => list(&words()),
        Shape::Form(form) => format!("{}, like `{}`", form.phrase, form.example),
        Shape::Object(place) => format!("[{}](#{})", place.phrase, anchor(place)),
        Shape::Map(_, inner) => format!("an object: each value is {}", value(inner)),
        Shape::List(_, inner) => format!("a list: each is {}", value(inner)),
        Shape::Either(shapes) => shapes.iter().map(value).collect::<Vec<_>>().join("; or "),
    }
}

/// Where the page speaks of a place.
fn anchor(place: &Place) -> String {
    place.id.replace('_', "-")
}

fn open(place: &Place) -> String {
    format!("<!-- fields of {}: written from the grammar -->\n", place.id)
}

const CLOSE: &str = "<!-- end -->";

#[test]
fn the_reference_has_every_field() {
    let text = fs::read_to_string(page()).unwrap();
    let mut written = text.clone();
    for place in places() {
        let (open, anchor) = (open(place), format!("<a id=\"{}\"></a>", anchor(place)));
        assert_eq!(written.matches(&open).count(), 1, "the page has one place for {}", place.phrase);
        assert_eq!(written.matches(&anchor).count(), 1, "{anchor}");
        let (before, rest) = written.split_once(&open).unwrap();
        let (_, after) = rest.split_once(CLOSE).expect("every table has an end");
        written = format!("{before}{open}{}{CLOSE}{after}", table(place));
    }
    assert_eq!(written.matches(CLOSE).count(), places().len(), "no table of a place that is gone");
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        fs::write(page(), &written).unwrap();
    }
    let found = fs::read_to_string(page()).unwrap();
    assert!(found == written, "docs/reference/language.md differs; TIDEGATE_BLESS=1 writes it");
}
