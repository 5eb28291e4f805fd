//! A `.tar.gz` whose bytes depend on its content and one time, and on nothing else.

use anyhow::Result;
use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

/// A file of the archive.
pub(crate) struct Entry {
    /// Path inside the archive's folder, with `/`.
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) bytes: Vec<u8>,
}

#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// Executable.
    Program,
    Data,
}

impl Entry {
    pub(crate) fn text(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), kind: Kind::Data, bytes: text.into().into_bytes() }
    }
}

/// Packs the files below one folder of this name, sorted, all with this time (seconds since 1970).
pub(crate) fn pack(folder: &str, mut entries: Vec<Entry>, time: u64, level: Compression) -> Result<Vec<u8>> {
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    // Neither a file name nor a time in the head of the compressed stream.
    let gzip = GzBuilder::new().write(Vec::new(), level);
    let mut tar = Builder::new(gzip);
    for entry in &entries {
        let mut header = Header::new_ustar();
        header.set_entry_type(EntryType::Regular);
        header.set_size(entry.bytes.len() as u64);
        header.set_mtime(time);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mode(match entry.kind {
            Kind::Program => 0o755,
            Kind::Data => 0o644,
        });
        tar.append_data(&mut header, format!("{folder}/{}", entry.name), &*entry.bytes)?;
    }
    Ok(tar.into_inner()?.finish()?)
}

#[cfg(test)]
mod tests {
    use super::{Compression, Entry, Kind, pack};

    #[test]
    fn archive_bytes_are_the_same_for_any_file_order() {
        let file = |name: &str| Entry::text(name, format!("of {name}"));
        let program =
            || Entry { name: "program".to_owned(), kind: Kind::Program, bytes: b"\x7fELF".to_vec() };
        let one = pack("a-1.0", vec![file("b/c"), program(), file("a")], 1_700_000_000, Compression::best())
            .unwrap();
        let other =
            pack("a-1.0", vec![file("a"), file("b/c"), program()], 1_700_000_000, Compression::best())
                .unwrap();
        assert_eq!(one, other);
        let later =
            pack("a-1.0", vec![file("a"), file("b/c"), program()], 1_700_000_001, Compression::best())
                .unwrap();
        assert_ne!(one, later);
        let mut unpacked = tar::Archive::new(flate2::read::GzDecoder::new(&*one));
        let listed: Vec<(String, u32, u64)> = unpacked
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let header = entry.header();
                let path = entry.path().unwrap().display().to_string();
                (path, header.mode().unwrap(), header.mtime().unwrap())
            })
            .collect();
        assert_eq!(
            listed,
            [
                ("a-1.0/a".to_owned(), 0o644, 1_700_000_000),
                ("a-1.0/b/c".to_owned(), 0o644, 1_700_000_000),
                ("a-1.0/program".to_owned(), 0o755, 1_700_000_000),
            ]
        );
    }
}
