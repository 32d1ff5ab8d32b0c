//! Reads an order: which runner carries it out, and with what.

use serde::Deserialize;
use serde_json::value::RawValue;
use tidegate_core::ids::Name;
use tidegate_core::model::Order;
use tidegate_core::protocol::Payload;
use tidegate_flow::chain::Chain;

pub(crate) enum Work {
    Order(Order),
    Call { function: Name, input: Payload },
    Chain(Chain),
}

/// `{"call": {"function": "billing.charge", "input": {…}}}`: a function that this worker registered.
/// `{"do": {"root": {…}, "scope": {…}}}`: a chain, which is rendered as it is carried out.
#[derive(Deserialize)]
struct OtherOrder<'a> {
    #[serde(borrow)]
    call: Option<Call<'a>>,
    #[serde(rename = "do")]
    chain: Option<Chain>,
}

#[derive(Deserialize)]
struct Call<'a> {
    function: Name,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

/// The error is a sentence.
pub(crate) fn read(order: &Payload) -> Result<Work, String> {
    let unreadable = |error| format!("this worker cannot read the order: {error}");
    let OtherOrder { call, chain } = serde_json::from_slice(order.bytes()).map_err(unreadable)?;
    if let Some(chain) = chain {
        return Ok(Work::Chain(chain));
    }
    match call {
        Some(Call { function, input }) => {
            let input = input.map_or_else(Payload::null, |input| Payload::new(input.get()));
            Ok(Work::Call { function, input })
        }
        None => serde_json::from_slice(order.bytes()).map(Work::Order).map_err(unreadable),
    }
}

/// The order that has a worker call `function`.
pub fn call(function: &Name, input: &Payload) -> Payload {
    let mut json = br#"{"call":{"function":"#.to_vec();
    // A string always serialises.
    json.extend(serde_json::to_vec(function).unwrap_or_default());
    json.extend(br#","input":"#);
    json.extend(input.bytes());
    json.extend(b"}}");
    Payload::new(json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_told_apart() {
        let run = read(&Payload::new(r#"{"run":{"argv":["true"]}}"#));
        assert!(matches!(run, Ok(Work::Order(Order::Run { argv, .. })) if argv == ["true"]));
        let called = read(&call(&"a \"b\"".into(), &Payload::new("[1]")));
        assert!(matches!(called, Ok(Work::Call { function, input })
            if function.as_str() == "a \"b\"" && input.bytes() == b"[1]"));
        let chain = r#"{"do":{"root":{"name":"a","work":{"wait":"1s"}},"scope":{}}}"#;
        assert!(
            matches!(read(&Payload::new(chain)), Ok(Work::Chain(chain)) if chain.root.name.as_str() == "a")
        );
        assert!(read(&Payload::new("{}")).is_err());
        assert!(read(&Payload::new("nonsense")).is_err());
    }
}
