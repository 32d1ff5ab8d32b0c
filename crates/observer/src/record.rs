//! One fact as 64 bytes, so that a single append puts it down whole and a file of them needs no parsing.

/// Bytes of a record.
pub const SIZE: usize = 64;

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Fact {
    /// A caller began to ask for the job.
    Asked,
    /// A caller was told that the job is accepted, and durable.
    Acknowledged,
    /// A caller asked again, and was told that the job had been accepted before.
    Found,
    /// An execution of the job began.
    Started,
    /// The lease of an execution ends later now.
    Renewed,
    /// An execution of the job ran to its end.
    Ended,
    /// An execution of the job was ended before that.
    Stopped,
    /// The process had been stopped as a whole, and goes on from here.
    Resumed,
    /// The process is gone: whatever it ran, it runs no more from here on.
    Died,
    /// The store's history says that the job succeeded. One record for each row that says so.
    Finished,
    /// The store's history says that the job ended otherwise.
    GivenUp,
}

const FACTS: [Fact; 11] = [
    Fact::Asked,
    Fact::Acknowledged,
    Fact::Found,
    Fact::Started,
    Fact::Renewed,
    Fact::Ended,
    Fact::Stopped,
    Fact::Resumed,
    Fact::Died,
    Fact::Finished,
    Fact::GivenUp,
];

/// Units of one limit, held from the start of an execution to its end. Limits are known by number, from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Claim {
    /// 0 for no claim.
    pub limit: u32,
    pub units: u32,
}

/// A fact about a job, by whoever saw it. What is not known, or does not apply, is 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    pub fact: Fact,
    pub job: u64,
    /// The line the job stands in: an action, a key and a priority. Jobs of one line start in the order in which they
    /// were accepted.
    pub line: u16,
    /// The process that asked for it or executed it, that goes on or that died.
    pub process: u32,
    /// Tells the executions of a process apart: the number of the grant where it is known.
    pub execution: u64,
    /// The place in the order of acceptance, from 1.
    pub order: u64,
    pub claims: [Claim; 2],
    /// [`clock::now`](crate::clock::now) when it happened.
    pub at: u64,
    /// When the lease of the execution ends, if it has one that the job can know.
    pub until: u64,
}

impl Record {
    pub fn new(fact: Fact, job: u64, at: u64) -> Record {
        Record {
            fact,
            job,
            line: 0,
            process: 0,
            execution: 0,
            order: 0,
            claims: [Claim::default(); 2],
            at,
            until: 0,
        }
    }

    pub fn encode(&self) -> [u8; SIZE] {
        let [first, second] = self.claims;
        let mut bytes = [0; SIZE];
        let mut at = 0;
        let mut put = |part: &[u8]| {
            bytes[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        };
        put(&(self.fact as u16).to_le_bytes());
        put(&self.line.to_le_bytes());
        put(&self.process.to_le_bytes());
        for number in [self.job, self.execution, self.order, self.at, self.until] {
            put(&number.to_le_bytes());
        }
        for number in [first.limit, first.units, second.limit, second.units] {
            put(&number.to_le_bytes());
        }
        bytes
    }

    /// `None`: these bytes are not a record.
    pub fn decode(bytes: &[u8; SIZE]) -> Option<Record> {
        let long = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let short = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        Some(Record {
            fact: *FACTS.get(usize::from(short(0)?))?,
            line: short(2)?,
            process: word(4)?,
            job: long(8)?,
            execution: long(16)?,
            order: long(24)?,
            at: long(32)?,
            until: long(40)?,
            claims: [
                Claim { limit: word(48)?, units: word(52)? },
                Claim { limit: word(56)?, units: word(60)? },
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_read_back() {
        for fact in FACTS {
            let record = Record {
                fact,
                job: 1 << 60,
                line: 65_000,
                process: 4_000_000_000,
                execution: 3,
                order: 4,
                claims: [Claim { limit: 5, units: 6 }, Claim { limit: 7, units: 8 }],
                at: 9,
                until: 10,
            };
            assert_eq!(Record::decode(&record.encode()), Some(record));
        }
        assert_eq!(Record::decode(&[255; SIZE]), None);
    }
}
