//! Reads an order: which runner carries it out, and with what.

use serde::Deserialize;
use serde_json::value::RawValue;
use tidegate_core::ids::Name;
use tidegate_core::model::Order;
use tidegate_core::protocol::Payload;

pub(crate) enum Work {
    Order(Order),
    Call { function: Name, input: Payload },
}

/// `{"call": {"function": "billing.charge", "input": {…}}}`: a function that this worker registered.
#[derive(Deserialize)]
struct CallOrder<'a> {
    #[serde(borrow)]
    call: Option<Call<'a>>,
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
    let CallOrder { call } = serde_json::from_slice(order.bytes()).map_err(unreadable)?;
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
        assert!(read(&Payload::new("{}")).is_err());
        assert!(read(&Payload::new("nonsense")).is_err());
    }
}
