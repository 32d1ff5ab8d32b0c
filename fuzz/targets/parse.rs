//! Any bytes at all, as a file: there is an answer, quickly, in little memory, and what is wrong can be drawn.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(errors) = tidegate_flow::parse("any.yaml", bytes) {
        assert!(!errors.to_string().is_empty(), "an error says something");
        assert!(!errors.render(false).is_empty(), "and can be drawn");
    }
});
