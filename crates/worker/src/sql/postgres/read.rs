//! A value as PostgreSQL sends it, as JSON. Types are those that have one meaning everywhere; others are to be cast.

use super::moment;
use crate::sql::results::{float, short_float};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use fallible_iterator::FallibleIterator;
use postgres_protocol::types as wire;
use serde_json::{Map, Value as Json};
use std::error::Error;
use tokio_postgres::types::{Field, FromSql, Kind, Type};

type Unreadable = Box<dyn Error + Sync + Send>;

/// The bytes of a value, whatever its type.
pub(super) struct Raw<'a>(pub Option<&'a [u8]>);

impl<'a> FromSql<'a> for Raw<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Raw<'a>, Unreadable> {
        Ok(Raw(Some(raw)))
    }

    fn from_sql_null(_: &Type) -> Result<Raw<'a>, Unreadable> {
        Ok(Raw(None))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

pub(super) fn value(kind: &Type, raw: &[u8]) -> Result<Json, Unreadable> {
    match kind.kind() {
        Kind::Array(element) => array(element, raw),
        Kind::Composite(fields) => composite(fields, raw),
        Kind::Domain(kind) => value(kind, raw),
        Kind::Enum(_) => text(raw),
        // What an extension calls so is text, and sent as such.
        _ if kind.name() == "citext" => text(raw),
        _ => simple(kind, raw),
    }
}

fn simple(kind: &Type, raw: &[u8]) -> Result<Json, Unreadable> {
    Ok(match *kind {
        Type::BOOL => Json::from(wire::bool_from_sql(raw)?),
        Type::INT2 => Json::from(wire::int2_from_sql(raw)?),
        Type::INT4 => Json::from(wire::int4_from_sql(raw)?),
        Type::INT8 => Json::from(wire::int8_from_sql(raw)?),
        Type::OID => Json::from(wire::oid_from_sql(raw)?),
        Type::FLOAT4 => short_float(wire::float4_from_sql(raw)?),
        Type::FLOAT8 => float(wire::float8_from_sql(raw)?),
        Type::NUMERIC => Json::from(numeric(raw)?),
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::UNKNOWN | Type::XML => text(raw)?,
        Type::CHAR => text(if raw == [0] { &[] } else { raw })?,
        Type::JSON => serde_json::from_slice(raw)?,
        // Its first byte is the version of what follows.
        Type::JSONB => serde_json::from_slice(raw.get(1..).unwrap_or_default())?,
        Type::BYTEA => Json::from(BASE64_STANDARD.encode(raw)),
        Type::UUID => Json::from(uuid(wire::uuid_from_sql(raw)?)),
        Type::DATE => Json::from(moment::date(wire::date_from_sql(raw)?)),
        Type::TIMESTAMP => Json::from(moment::timestamp(wire::timestamp_from_sql(raw)?, "")),
        Type::TIMESTAMPTZ => Json::from(moment::timestamp(wire::timestamp_from_sql(raw)?, "Z")),
        Type::TIME => Json::from(moment::time(wire::time_from_sql(raw)?)),
        Type::TIMETZ => {
            let (time, zone) = raw.split_at_checked(8).ok_or("too short")?;
            let zone = moment::zone(wire::int4_from_sql(zone)?);
            Json::from(moment::time(wire::time_from_sql(time)?) + &zone)
        }
        Type::INTERVAL => {
            let (micros, rest) = raw.split_at_checked(8).ok_or("too short")?;
            let (days, months) = rest.split_at_checked(4).ok_or("too short")?;
            let (days, months) = (wire::int4_from_sql(days)?, wire::int4_from_sql(months)?);
            Json::from(moment::interval(months, days, wire::int8_from_sql(micros)?))
        }
        Type::INET | Type::CIDR => Json::from(network(kind, raw)?),
        Type::MACADDR => {
            let bytes = wire::macaddr_from_sql(raw)?;
            Json::from(bytes.map(|byte| format!("{byte:02x}")).join(":"))
        }
        Type::BIT | Type::VARBIT => Json::from(bits(raw)?),
        Type::VOID => Json::Null,
        _ => return Err("there is no JSON for it".into()),
    })
}

fn text(raw: &[u8]) -> Result<Json, Unreadable> {
    Ok(Json::from(wire::text_from_sql(raw)?))
}

/// All digits that it has: groups of four, of which the first stands `weight` groups before the point.
fn numeric(raw: &[u8]) -> Result<String, Unreadable> {
    let words: Vec<u16> = raw.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
    let [_, weight, sign, scale, groups @ ..] = words.as_slice() else { return Err("too short".into()) };
    let sign = match sign {
        0x0000 => "",
        0x4000 => "-",
        0xC000 => return Ok("NaN".to_owned()),
        0xD000 => return Ok("Infinity".to_owned()),
        0xF000 => return Ok("-Infinity".to_owned()),
        _ => return Err("an unknown sign".into()),
    };
    let (weight, scale) = (i32::from(*weight as i16), usize::from(*scale));
    let group = |place: i32| {
        let index = usize::try_from(weight - place).ok();
        index.and_then(|index| groups.get(index)).copied().unwrap_or(0)
    };
    let whole: String = (0..=weight.max(0)).rev().map(|place| format!("{:04}", group(place))).collect();
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        digits => digits,
    };
    if scale == 0 {
        return Ok(format!("{sign}{whole}"));
    }
    let places = scale.div_ceil(4) as i32;
    let fraction: String = (1..=places).map(|place| format!("{:04}", group(-place))).collect();
    Ok(format!("{sign}{whole}.{}", &fraction[..scale]))
}

fn uuid(bytes: [u8; 16]) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let parts = [&bytes[..4], &bytes[4..6], &bytes[6..8], &bytes[8..10], &bytes[10..]];
    parts.map(hex).join("-")
}

/// A whole address has no mask, except where all of them do.
fn network(kind: &Type, raw: &[u8]) -> Result<String, Unreadable> {
    let network = wire::inet_from_sql(raw)?;
    let whole = if network.addr().is_ipv4() { 32 } else { 128 };
    Ok(match *kind == Type::INET && network.netmask() == whole {
        true => network.addr().to_string(),
        false => format!("{}/{}", network.addr(), network.netmask()),
    })
}

fn bits(raw: &[u8]) -> Result<String, Unreadable> {
    let bits = wire::varbit_from_sql(raw)?;
    let bit = |index: usize| match bits.bytes()[index / 8] >> (7 - index % 8) & 1 {
        0 => '0',
        _ => '1',
    };
    Ok((0..bits.len()).map(bit).collect())
}

fn array(element: &Type, raw: &[u8]) -> Result<Json, Unreadable> {
    let array = wire::array_from_sql(raw)?;
    let lengths: Vec<usize> =
        array.dimensions().map(|dimension| Ok(dimension.len.max(0) as usize)).collect()?;
    let mut items = Vec::new();
    let mut values = array.values();
    while let Some(item) = values.next()? {
        items.push(item.map_or(Ok(Json::Null), |raw| value(element, raw))?);
    }
    // The innermost dimension varies fastest.
    for length in lengths.iter().skip(1).rev().filter(|length| **length > 0) {
        items = items.chunks(*length).map(|chunk| Json::Array(chunk.to_vec())).collect();
    }
    Ok(Json::Array(items))
}

/// How many fields, then of each its type, its length (or -1) and its bytes.
fn composite(fields: &[Field], raw: &[u8]) -> Result<Json, Unreadable> {
    let mut rest = raw.get(4..).ok_or("too short")?;
    let mut object = Map::new();
    for field in fields {
        let (head, after) = rest.split_at_checked(8).ok_or("too short")?;
        let length = wire::int4_from_sql(&head[4..])?;
        let found = match usize::try_from(length) {
            Ok(length) => {
                let (bytes, after) = after.split_at_checked(length).ok_or("too short")?;
                rest = after;
                value(field.type_(), bytes)?
            }
            Err(_) => {
                rest = after;
                Json::Null
            }
        };
        object.insert(field.name().to_owned(), found);
    }
    Ok(Json::Object(object))
}
