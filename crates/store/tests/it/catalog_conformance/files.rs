use super::*;
use throughline_store::{BlobFolder, BlobLimits, StoreError};

pub async fn files_are_listed_with_sanitized_names(store: &Opened) {
    let catalog = &store.catalog;
    let new = NewFile { name: "../../etc/cron.d/pa\u{202e}yload\n.png".into(), ..file("f1", "h", 10) };
    let row = catalog.add_file(ANN, new).await.unwrap();
    assert_eq!((row.name.as_str(), row.bytes, row.media_type.as_str()), ("payload.png", 10, "text/plain"));
    assert_eq!(catalog.file(ANN, "f1").await, Ok(Some(row)));
    assert_eq!(catalog.add_file(BOB, file("f1", "h", 10)).await, Err(StoreError::Exists { what: "file" }));
    for n in 2..=5 {
        catalog.add_file(ANN, file(&format!("f{n}"), "h", 10 + n / 2)).await.unwrap();
    }
    for rows in [1, 2, 5] {
        let files = walk(rows, |page| async move { catalog.files(ANN, &page).await }).await;
        let ids: Vec<_> = files.into_iter().map(|file| file.id).collect();
        assert_eq!(ids, ["f5", "f4", "f3", "f2", "f1"], "{rows} a page");
    }
    let nowhere =
        catalog.add_file(ANN, NewFile { made_in: Some("absent".into()), ..file("f9", "h", 1) }).await;
    assert!(matches!(nowhere, Err(StoreError::Invalid { field: "made_in", .. })), "{nowhere:?}");
    assert_eq!(catalog.file(ANN, "f9").await, Ok(None), "all of it or nothing");
    assert_eq!(catalog.remove_file(ANN, "f5").await.map(|file| file.is_some()), Ok(true));
    assert_eq!(catalog.remove_file(ANN, "f5").await, Ok(None));
}

pub async fn used_file_with_equal_content_is_reused(store: &Opened) {
    let catalog = &store.catalog;
    store.begin(ANN, alone("t", 1)).await;
    let stored = catalog.find_or_add_file(ANN, file("f1", "h", 10)).await.unwrap();
    let unused = catalog.find_or_add_file(ANN, file("f2", "h", 10)).await.unwrap();
    assert_eq!(
        (stored.id.as_str(), unused.id.as_str()),
        ("f1", "f2"),
        "one that nobody uses may go any time"
    );
    assert_eq!(catalog.record_file_use(ANN, "t", "f1").await, Ok(true));
    assert_eq!(catalog.record_file_use(ANN, "t", "f1").await, Ok(true), "twice is once");
    assert_eq!(catalog.record_file_use(ANN, "t", "absent").await, Ok(false));
    assert_eq!(catalog.record_file_use(BOB, "t", "f1").await, Ok(false));
    let again = NewFile { made_in: Some("t".into()), ..file("f3", "h", 11) };
    assert_eq!(catalog.find_or_add_file(ANN, again).await.unwrap().id, "f1");
    let other = NewFile { media_type: "image/png".into(), ..file("f4", "h", 12) };
    assert_eq!(catalog.find_or_add_file(ANN, other).await.unwrap().id, "f4", "another type is another file");
    assert_eq!(
        catalog.find_or_add_file(BOB, file("f5", "h", 13)).await.unwrap().id,
        "f5",
        "so is another user's"
    );
}

pub async fn blob_is_deleted_with_its_last_file(store: &Opened) {
    let catalog = &store.catalog;
    let folder = tempfile::tempdir().unwrap();
    let blobs = BlobFolder::open(folder.path(), BlobLimits::default()).await.unwrap();
    let stored = blobs.put(b"the same").await.unwrap();
    let hash = stored.hash.clone();
    for (user, id) in [(ANN, "f1"), (BOB, "f2")] {
        let new = NewFile { bytes: stored.bytes, ..file(id, &hash, 1) };
        catalog.add_file(user, new).await.unwrap();
    }
    drop(stored);
    let stray = blobs.put(b"nobody's").await.unwrap().hash.clone();
    let hashes = [hash.clone(), stray.clone(), "no hash".to_owned()];
    assert_eq!(catalog.blobs_in_use(&hashes).await.unwrap().into_iter().collect::<Vec<_>>(), hashes[..1]);
    assert_eq!(blobs.sweep(&**catalog).await.unwrap(), 1);
    assert_eq!(blobs.read(&stray).await.unwrap(), None);

    catalog.remove_file(ANN, "f1").await.unwrap();
    assert_eq!(
        blobs.collect(&**catalog, std::slice::from_ref(&hash)).await.unwrap(),
        0,
        "another file needs it"
    );
    assert_eq!(blobs.read(&hash).await.unwrap().as_deref(), Some(&b"the same"[..]));
    catalog.remove_file(BOB, "f2").await.unwrap();
    assert_eq!(blobs.collect(&**catalog, std::slice::from_ref(&hash)).await.unwrap(), 1);
    assert_eq!(blobs.read(&hash).await.unwrap(), None);
}

// Limit: `user_files_bytes_max`.
pub async fn user_file_bytes_are_limited(store: &Opened) {
    let catalog = &store.catalog;
    let sized = |id: &str, bytes| NewFile { bytes, ..file(id, "h", 1) };
    assert!(catalog.add_file(ANN, sized("a", 60)).await.is_ok());
    assert!(catalog.add_file(ANN, sized("b", 40)).await.is_ok());
    let over = Err(StoreError::OverLimit { limit: "user_files_bytes_max", max: 100 });
    assert_eq!(catalog.add_file(ANN, sized("c", 1)).await, over);
    assert!(catalog.add_file(BOB, sized("d", 100)).await.is_ok());
    assert!(catalog.remove_file(ANN, "b").await.is_ok());
    assert!(catalog.add_file(ANN, sized("c", 40)).await.is_ok());
    let absurd = catalog.add_file(BOB, sized("e", u64::MAX)).await;
    assert!(matches!(absurd, Err(StoreError::Invalid { field: "bytes", .. })), "{absurd:?}");
}
