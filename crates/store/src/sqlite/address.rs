//! Where whoever leads a shared file is reached: a small file beside it, for its user alone.
//!
//! It is only worth something together with the store: whoever reads it compares the name in it with the one that the store
//! says leads, so a file that was left behind is harmless. One that another user could have written or read is not
//! believed: who leads decides what programs the others run.

use super::lock::beside;
use crate::contract::Contact;
use serde::{Deserialize, Serialize};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use tidegate_core::ids::Name;

#[derive(Serialize, Deserialize)]
struct Content {
    server: Name,
    address: String,
    token: String,
}

/// Replaces whatever is there, at once and as a whole.
pub fn write(store: &Path, server: &Name, contact: &Contact) -> io::Result<()> {
    let Contact { address, token } = contact.clone();
    let text = serde_json::to_vec(&Content { server: server.clone(), address, token })?;
    let draft = beside(store, &format!(".address.{}", std::process::id()));
    // A process of the same number may have left one.
    let _ = fs::remove_file(&draft);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    file.write_all(&text).and_then(|()| fs::rename(&draft, path(store))).inspect_err(|_| {
        let _ = fs::remove_file(&draft);
    })
}

/// How the server of this name is reached. Nothing if the file does not say; an error, in words, if it is not believed.
pub fn read(store: &Path, server: &Name) -> Result<Option<Contact>, String> {
    let path = path(store);
    let wrong = |why: &str| format!("{} {why}", path.display());
    let file = match fs::File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(wrong(&format!("cannot be read: {error}"))),
    };
    let unread = |error: io::Error| wrong(&format!("cannot be read: {error}"));
    let about = file.metadata().map_err(unread)?;
    if let Some(why) = distrust(about.uid(), about.mode(), rustix::process::geteuid().as_raw()) {
        return Err(wrong(why));
    }
    let text = io::read_to_string(file).map_err(unread)?;
    // One that cannot be understood is replaced by the next that leads.
    let Ok(Content { server: named, address, token }) = serde_json::from_str(&text) else { return Ok(None) };
    Ok((named == *server).then_some(Contact { address, token }))
}

pub fn remove(store: &Path) {
    // One that stays is stale, which is harmless.
    let _ = fs::remove_file(path(store));
}

fn path(store: &Path) -> PathBuf {
    beside(store, ".address")
}

/// Why a file of this owner and with these permissions is not believed.
fn distrust(owner: u32, mode: u32, me: u32) -> Option<&'static str> {
    match (owner == me, mode & 0o077) {
        (false, _) => Some("belongs to another user"),
        (true, 0) => None,
        (true, _) => Some("can be read or written by other users"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn contact() -> Contact {
        Contact { address: "127.0.0.1:1".to_owned(), token: "secret".to_owned() }
    }

    #[test]
    fn it_is_for_this_user_and_about_one_server() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store.db");
        let (one, other) = (Name::new("one"), Name::new("other"));
        assert_eq!(read(&store, &one), Ok(None));
        write(&store, &other, &contact()).unwrap();
        write(&store, &one, &contact()).unwrap();
        assert_eq!(read(&store, &one), Ok(Some(contact())));
        assert_eq!(read(&store, &other), Ok(None), "what another server left says nothing");
        assert_eq!(fs::metadata(path(&store)).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no draft is left");
        fs::write(path(&store), "half of").unwrap();
        assert_eq!(read(&store, &one), Ok(None));
        remove(&store);
        remove(&store);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn one_that_others_may_touch_is_not_believed() {
        assert_eq!(distrust(7, 0o100_600, 7), None);
        assert_eq!(distrust(8, 0o100_600, 7), Some("belongs to another user"));
        for mode in [0o100_640, 0o100_604, 0o100_620, 0o100_602] {
            assert_eq!(distrust(7, mode, 7), Some("can be read or written by other users"));
        }
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store.db");
        write(&store, &Name::new("one"), &contact()).unwrap();
        fs::set_permissions(path(&store), fs::Permissions::from_mode(0o644)).unwrap();
        let why = read(&store, &Name::new("one")).unwrap_err();
        assert!(why.ends_with("store.db.address can be read or written by other users"), "{why}");
    }
}
