//! Guarantees of the blob folder: no name becomes a path, nothing half-written is ever a blob, and a blob in
//! use is not collected.

#![cfg(feature = "sqlite")]

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use throughline_store::{BlobError, BlobFolder, BlobLimits, Catalog, NewFile, SqliteSettings, SqliteStore};

struct BlobFixture {
    folder: TempDir,
    blobs: BlobFolder,
    catalog: SqliteStore,
}

async fn blob_fixture(limits: BlobLimits) -> BlobFixture {
    let folder = tempfile::tempdir().unwrap();
    let blobs = BlobFolder::open(folder.path().join("files"), limits).await.unwrap();
    let settings = SqliteSettings { ballast_bytes: 0, free_bytes_min: 0, ..SqliteSettings::default() };
    let catalog = SqliteStore::open(&folder.path().join("throughline.db"), settings).await.unwrap();
    BlobFixture { folder, blobs, catalog }
}

impl BlobFixture {
    fn root(&self) -> PathBuf {
        self.folder.path().join("files")
    }

    fn path(&self, hash: &str) -> PathBuf {
        self.root().join(&hash[..2]).join(&hash[2..4]).join(hash)
    }

    /// All files, in every subfolder.
    fn files(&self) -> Vec<PathBuf> {
        fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
            for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
                if entry.file_type().unwrap().is_dir() {
                    walk(&entry.path(), found)
                } else {
                    found.push(entry.path())
                }
            }
        }
        let mut found = Vec::new();
        walk(&self.root(), &mut found);
        found
    }
}

fn file(id: &str, hash: &str, bytes: u64) -> NewFile {
    NewFile {
        id: id.into(),
        name: "a.txt".into(),
        media_type: "text/plain".into(),
        bytes,
        hash: hash.into(),
        made_in: None,
        created_at: 1,
    }
}

#[tokio::test]
async fn equal_contents_share_one_blob() {
    let fixture = blob_fixture(BlobLimits::default()).await;
    let first = fixture.blobs.put(b"hello").await.unwrap();
    assert_eq!((first.hash.clone(), first.bytes), (blake3::hash(b"hello").to_hex().to_string(), 5));
    let second = fixture.blobs.put(b"hello").await.unwrap();
    let other = fixture.blobs.put(b"").await.unwrap();
    assert_eq!(second.hash, first.hash);
    let mut files = fixture.files();
    files.sort();
    let mut expected = vec![fixture.path(&first.hash), fixture.path(&other.hash)];
    expected.sort();
    assert_eq!(files, expected);
    assert_eq!(fixture.blobs.read(&first.hash).await.unwrap().as_deref(), Some(&b"hello"[..]));
    assert_eq!(fixture.blobs.read(&other.hash).await.unwrap().as_deref(), Some(&b""[..]));
}

#[cfg(unix)]
#[tokio::test]
async fn blob_files_are_readable_only_by_the_owner() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = blob_fixture(BlobLimits::default()).await;
    let stored = fixture.blobs.put(b"private").await.unwrap();
    let blob = fixture.path(&stored.hash);
    for (path, mode) in [(blob.as_path(), 0o600), (blob.parent().unwrap(), 0o700), (&fixture.root(), 0o700)] {
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, mode, "{}", path.display());
    }
}

#[tokio::test]
async fn invalid_hashes_never_become_paths() {
    let fixture = blob_fixture(BlobLimits::default()).await;
    std::fs::write(fixture.folder.path().join("secret"), "secret").unwrap();
    let stored = fixture.blobs.put(b"x").await.unwrap();
    let hash = stored.hash.clone();
    // Collecting waits for every holder of a blob.
    drop(stored);
    let names = [
        "",
        "..",
        "../secret",
        "/etc/passwd",
        "unfinished",
        "é",
        &hash[..63],
        &hash.to_uppercase(),
        &format!("{}/../../../secret", &hash[..46]),
        &format!("{}\0", &hash[..63]),
        &format!("{}0", hash),
    ];
    let as_it_was = fixture.files();
    for name in names {
        assert_eq!(fixture.blobs.read(name).await.unwrap(), None, "{name:?}");
        assert!(fixture.blobs.file(name).await.unwrap().is_none(), "{name:?}");
        assert_eq!(fixture.blobs.collect(&fixture.catalog, &[name.to_owned()]).await.unwrap(), 0, "{name:?}");
    }
    assert_eq!(fixture.files(), as_it_was);
}

// Limit: `file_bytes_max`.
#[tokio::test]
async fn oversized_blob_leaves_no_file() {
    let fixture = blob_fixture(BlobLimits { file_bytes_max: 10 }).await;
    assert!(fixture.blobs.put(&[7; 10]).await.is_ok());
    let as_it_was = fixture.files();
    assert!(matches!(fixture.blobs.put(&[7; 11]).await, Err(BlobError::OverLimit { max: 10 })));
    let mut in_parts = fixture.blobs.begin().await.unwrap();
    in_parts.write(&[7; 6]).await.unwrap();
    assert!(matches!(in_parts.write(&[7; 5]).await, Err(BlobError::OverLimit { max: 10 })));
    assert!(in_parts.finish().await.is_err(), "what has failed does not become a blob");
    assert_eq!(fixture.files(), as_it_was);
}

#[tokio::test]
async fn parts_form_one_blob_and_a_dropped_write_is_removed() {
    let fixture = blob_fixture(BlobLimits::default()).await;
    let mut blob = fixture.blobs.begin().await.unwrap();
    let part = vec![1; 100_000];
    for _ in 0..7 {
        blob.write(&part).await.unwrap();
    }
    assert_eq!(fixture.files().len(), 1, "it is not finished");
    let stored = blob.finish().await.unwrap();
    assert_eq!(
        (stored.bytes, stored.hash.clone()),
        (700_000, blake3::hash(&part.repeat(7)).to_hex().to_string())
    );
    assert_eq!(fixture.files(), [fixture.path(&stored.hash)]);

    let mut given_up = fixture.blobs.begin().await.unwrap();
    given_up.write(&part.repeat(9)).await.unwrap();
    assert_eq!(fixture.files().len(), 2);
    drop(given_up);
    assert_eq!(fixture.files(), [fixture.path(&stored.hash)]);
}

#[tokio::test]
async fn unfinished_blobs_are_removed_on_open() {
    let fixture = blob_fixture(BlobLimits::default()).await;
    let stored = fixture.blobs.put(b"whole").await.unwrap();
    std::fs::write(fixture.root().join("unfinished/half"), "hal").unwrap();
    let again = BlobFolder::open(fixture.root(), BlobLimits::default()).await.unwrap();
    assert_eq!(fixture.files(), [fixture.path(&stored.hash)]);
    assert_eq!(again.read(&stored.hash).await.unwrap().as_deref(), Some(&b"whole"[..]));
    assert!(again.put(b"more").await.is_ok());
}

#[tokio::test]
async fn damaged_blob_is_detected_and_repaired_by_rewriting() {
    let fixture = blob_fixture(BlobLimits::default()).await;
    let hash = fixture.blobs.put(b"sound").await.unwrap().hash.clone();
    std::fs::write(fixture.path(&hash), "spoilt").unwrap();
    let read = fixture.blobs.read(&hash).await;
    assert!(matches!(&read, Err(BlobError::Damaged { hash: damaged }) if *damaged == hash), "{read:?}");
    drop(fixture.blobs.put(b"sound").await.unwrap());
    assert_eq!(fixture.blobs.read(&hash).await.unwrap().as_deref(), Some(&b"sound"[..]));
}

#[tokio::test(start_paused = true)]
async fn blob_in_use_is_not_collected() {
    let fixture = blob_fixture(BlobLimits::default()).await;
    let stored = fixture.blobs.put(b"new").await.unwrap();
    let hash = stored.hash.clone();
    let (blobs, catalog) = (fixture.blobs.clone(), fixture.catalog.clone());
    let mut sweep = tokio::spawn(async move { blobs.sweep(&catalog).await.unwrap() });
    // The hour passes when nothing else can happen: the sweep waits for the holder of the blob.
    assert!(tokio::time::timeout(Duration::from_secs(3_600), &mut sweep).await.is_err());
    fixture.catalog.add_file("ann", file("f", &hash, stored.bytes)).await.unwrap();
    drop(stored);
    assert_eq!(sweep.await.unwrap(), 0);
    let mut open = fixture.blobs.file(&hash).await.unwrap().unwrap();

    // Nothing needs it any more: it is removed, and its reader reads to the end.
    fixture.catalog.remove_file("ann", "f").await.unwrap();
    assert_eq!(fixture.blobs.sweep(&fixture.catalog).await.unwrap(), 1);
    assert_eq!(fixture.files(), Vec::<PathBuf>::new());
    let mut rest = String::new();
    open.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "new");
}

#[tokio::test]
async fn sweep_removes_only_unreferenced_blobs() {
    let fixture = blob_fixture(BlobLimits::default()).await;
    for n in 0..1_200_u32 {
        // As a crash leaves them; keeping each would wait for the disk.
        let hash = blake3::hash(&n.to_le_bytes()).to_hex().to_string();
        let path = fixture.path(&hash);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, n.to_le_bytes()).unwrap();
        if n % 400 == 0 {
            fixture.catalog.add_file("ann", file(&format!("f{n}"), &hash, 4)).await.unwrap();
        }
    }
    assert_eq!(fixture.blobs.sweep(&fixture.catalog).await.unwrap(), 1_197);
    assert_eq!(fixture.files().len(), 3);
}
