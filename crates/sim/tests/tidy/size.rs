//! Files and functions that fit into a head.

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::check::{Check, Finding};
use super::tree::{Source, Tree};

const LINES_OF_A_FILE: usize = 500;
const LINES_OF_A_FUNCTION: usize = 80;

pub const FILES: Check = Check {
    rule: "a file has about 400 lines, 500 at most",
    find: |tree| tree.rust().filter_map(too_long).collect(),
    bad: || vec![file(&"\n".repeat(LINES_OF_A_FILE + 1))],
    good: || vec![file(&"\n".repeat(LINES_OF_A_FILE)), Tree::sample(&[("Cargo.lock", &"\n".repeat(9_999))])],
};

pub const FUNCTIONS: Check = Check {
    rule: "a function has about 70 lines, 80 at most",
    find: |tree| tree.rust().flat_map(long_functions).collect(),
    bad: || {
        let long = "\n".repeat(LINES_OF_A_FUNCTION);
        vec![
            file(&format!("fn a() {{{long}}}")),
            file(&format!("impl A {{ pub async fn a(\n&self) {{{long}}} }}")),
            file(&format!("trait A {{ fn a() {{{long}}} }}")),
            file(&format!("mod a {{ fn a() {{ fn b() {{{long}}} }} }}")),
        ]
    },
    good: || {
        let fits = "\n".repeat(LINES_OF_A_FUNCTION - 1);
        vec![file(&format!("/// A.\n#[inline]\nfn a() {{{fits}}}")), file(&format!("mod a {{{fits}\n\n}}"))]
    },
};

fn file(text: &str) -> Tree {
    Tree::sample(&[("crates/core/src/a.rs", text)])
}

fn too_long(source: &Source) -> Option<Finding> {
    let lines = source.lines().count();
    (lines > LINES_OF_A_FILE).then(|| Finding::file(source, format!("{lines} lines")))
}

fn long_functions(source: &Source) -> Vec<Finding> {
    let file = syn::parse_file(&source.text).unwrap_or_else(|error| panic!("{}: {error}", source.path));
    let mut functions = Functions { source, findings: Vec::new() };
    functions.visit_file(&file);
    functions.findings
}

struct Functions<'a> {
    source: &'a Source,
    findings: Vec<Finding>,
}

impl Functions<'_> {
    /// From the signature to the closing brace: what is said above a function does not count.
    fn measure(&mut self, signature: &syn::Signature, end: Span) {
        let first = signature.span().start().line;
        let lines = end.end().line + 1 - first;
        if lines > LINES_OF_A_FUNCTION {
            let says = format!("fn {} has {lines} lines", signature.ident);
            self.findings.push(Finding::at(self.source, first, says));
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.measure(&function.sig, function.block.span());
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.measure(&function.sig, function.block.span());
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        self.measure(&function.sig, function.span());
        visit::visit_trait_item_fn(self, function);
    }
}
