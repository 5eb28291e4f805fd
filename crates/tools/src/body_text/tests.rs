use super::*;
use encoding_rs::Encoding;

const ROOM: usize = 10_000;

/// `expected` is the text, and what its note contains; without a note nothing is doubtful.
fn check(content_type: &str, body: &[u8], expected: &str, note: &str) {
    let read = BodyText::decode(content_type, body, BodyExtent::Complete, ROOM);
    let of = format!("{content_type}: {:?}", body.escape_ascii().to_string());
    assert_eq!(read.text, expected, "{of}");
    assert_eq!(read.extent, BodyExtent::Complete, "{of}");
    let noted = read.note.unwrap_or_default();
    assert!(if note.is_empty() { noted.is_empty() } else { noted.contains(note) }, "{of}: {noted}");
}

fn encoded(label: &str, text: &str) -> Vec<u8> {
    let (bytes, _, has_unmappable) = Encoding::for_label(label.as_bytes()).unwrap().encode(text);
    assert!(!has_unmappable, "{label}: {text}");
    bytes.into_owned()
}

#[test]
fn declared_charset_is_used() {
    for (label, text) in [
        ("GBK", "价格：128元"),
        ("gb2312", "北京天气晴"),
        ("gb18030", "𠮷野家"),
        ("Big5", "天氣晴朗"),
        ("Shift_JIS", "東京は晴れ"),
        ("EUC-JP", "東京は晴れ"),
        ("ISO-2022-JP", "東京は晴れ"),
        ("EUC-KR", "서울 맑음"),
        ("windows-1251", "Погода"),
        ("KOI8-R", "Погода"),
        ("ISO-8859-1", "Café für 5 £"),
        ("ISO-8859-7", "Αθήνα"),
        ("windows-1255", "שלום"),
        ("windows-1256", "مرحبا"),
        ("UTF-8", "价格 é"),
    ] {
        let bytes = encoded(label, text);
        for content_type in [
            format!("text/plain; charset={label}"),
            format!("text/html;CHARSET=\"{}\"", label.to_uppercase()),
            format!("application/json; a=b; charset = '{label}' "),
        ] {
            check(&content_type, &bytes, text, "");
        }
        let page = |head: &str| [head.as_bytes(), &bytes].concat();
        if label != "ISO-2022-JP" {
            let head = format!("<html><head><meta charset=\"{label}\">");
            check("text/html", &page(&head), &format!("{head}{text}"), "");
            let head = format!("<?xml version=\"1.0\" encoding='{label}'?>");
            check("application/rss+xml", &page(&head), &format!("{head}{text}"), "");
        }
    }
}

#[test]
fn bom_wins_over_header_and_header_over_meta() {
    let meta = "<meta charset=gbk>é";
    check("text/html; charset=utf-8", meta.as_bytes(), meta, "");
    check("text/html; charset=gbk", "\u{feff}é".as_bytes(), "é", "");
    check("text/plain; charset=latin1", b"\xff\xfe\x53\x4f", "体", "");
    check("application/json; charset=gbk", b"\xfe\xff\x4f\x4f", "住", "");
    // A declaration of HTML does not apply to other texts.
    check("text/plain", meta.as_bytes(), meta, "");
    check("text/html", meta.as_bytes(), "<meta charset=gbk>茅", "");
}

#[test]
fn utf8_json_ignores_a_declared_latin1_charset() {
    check("application/json; charset=ISO-8859-1", "{\"é\":\"价\"}".as_bytes(), "{\"é\":\"价\"}", "");
    check("text/plain; charset=ISO-8859-1", "é".as_bytes(), "Ã©", "");
}

#[test]
fn charset_label_is_found_as_in_browsers() {
    let found = |html: &str| {
        let labels = markup::labels("text/html", html.as_bytes());
        labels.iter().map(|label| String::from_utf8_lossy(label).into_owned()).collect::<Vec<_>>().join(" ")
    };
    for (html, expected) in [
        ("<meta charset=gbk>", "gbk"),
        ("<META\nCHARSET = 'gbk' />", "gbk"),
        ("<meta name=a content=\"x>y\" charset=gbk>", "gbk"),
        ("<meta http-equiv=\"Content-Type\" content=\"text/html; charset=gbk\">", "gbk"),
        ("<meta content='text/html; CHARSET = \"gbk\"' http-equiv=content-type>", "gbk"),
        ("<meta content=\"charset charset=gbk;x\" http-equiv=content-type>", "gbk"),
        ("<meta content=\"text/html; charset=gbk\">", ""),
        ("<meta http-equiv=refresh content=\"0; charset=gbk\">", ""),
        ("<!-- <meta charset=big5> --><meta charset=gbk>", "gbk"),
        ("<!--><meta charset=gbk>", "gbk"),
        ("<!-- <meta charset=gbk>", ""),
        ("<p title=\"<meta charset=big5>\"></p ><meta charset=gbk>", "gbk"),
        ("<!DOCTYPE html><?x?></><meta/charset=gbk>", "gbk"),
        ("<metadata charset=gbk><m charset=gbk>", ""),
        ("<meta charset=no-such><meta charset=gbk>", "no-such gbk"),
        ("a < b <meta charset=gbk", ""),
        ("<meta charset=\"gbk>", ""),
        ("<?xml version='1.0' encoding = \"gbk\"?>", "gbk"),
        (" <?xml encoding='gbk'?>", ""),
    ] {
        assert_eq!(found(html), expected, "{html}");
        // For every cut, nothing is read twice and reading terminates.
        for at in 0..html.len() {
            found(&html[..at]);
        }
    }
    assert_eq!(found(&format!("{}<meta charset=gbk>", " ".repeat(1_006))), "gbk");
    assert_eq!(found(&format!("{}<meta charset=gbk>", " ".repeat(1_007))), "");
}

#[test]
fn undeclared_or_unknown_charset_is_guessed_with_a_note() {
    check("text/plain", b"Caf\xe9", "Café", "declares no known charset");
    check("", b"Caf\xe9", "Café", "decoded as windows-1252");
    check("text/plain; charset=x-klingon", b"Caf\xe9", "Café", "`x-klingon` is unknown");
    check("text/plain; charset=x-klingon", "é".as_bytes(), "é", "`x-klingon` is unknown");
    check("text/plain; charset=x-klingon", b"plain", "plain", "");
    check("text/html; charset=hz-gb-2312", "é".as_bytes(), "é", "`hz-gb-2312` is unknown");
    check("text/plain; charset=\u{202e}\u{7}x", "é".as_bytes(), "é", "`\\u202e\\u0007x` is unknown");
    // A page names its own if the header names nothing that is known.
    check(
        "text/html; charset=none",
        b"<meta charset=gbk>\xbc\xdb",
        "<meta charset=gbk>价",
        "`none` is unknown",
    );
    check("text/html", b"<meta charset=utf-16>\xc3\xa9", "<meta charset=utf-16>é", "");
    // A few broken bytes do not make it another encoding.
    check("text/plain", b"\xe4\xbb\xb7\xe6\xa0\xbc \xff!", "价格 \u{fffd}!", "not UTF-8");
    check("text/plain; charset=utf-8", b"Caf\xe9!", "Caf\u{fffd}!", "are not UTF-8");
    check("text/plain; charset=gbk", b"\xbc\xdb\xff", "价\u{fffd}", "are not GBK");
}

#[test]
fn text_limit_never_splits_a_character() {
    for (label, text) in
        [("UTF-8", "aé价𠮷"), ("GBK", "a价格é"), ("Shift_JIS", "東a京"), ("UTF-16LE", "a价𠮷")]
    {
        let bytes = if label == "UTF-16LE" {
            text.encode_utf16().flat_map(u16::to_le_bytes).collect()
        } else {
            encoded(label, text)
        };
        let content_type = format!("text/plain; charset={label}");
        for at in 0..=bytes.len() {
            let read = BodyText::decode(&content_type, &bytes[..at], BodyExtent::Cut, ROOM);
            assert!(text.starts_with(&read.text), "{label} up to {at}: {}", read.text);
            assert_eq!((read.note, read.extent), (None, BodyExtent::Cut), "{label} up to {at}");
        }
        for bytes_max in 0..text.len() {
            let read = BodyText::decode(&content_type, &bytes, BodyExtent::Complete, bytes_max);
            assert!(read.text.len() <= bytes_max && text.starts_with(&read.text), "{label}: {bytes_max}");
            assert_eq!((read.note, read.extent), (None, BodyExtent::Cut), "{label}: {bytes_max}");
        }
        let read = BodyText::decode(&content_type, &bytes, BodyExtent::Complete, text.len());
        assert_eq!((read.text.as_str(), read.extent), (text, BodyExtent::Complete), "{label}");
    }
    // Undeclared, it is no less UTF-8 because it ends in half a character.
    let cut = BodyText::decode("text/plain", &"价格".as_bytes()[..5], BodyExtent::Cut, ROOM);
    assert_eq!((cut.text.as_str(), cut.note), ("价", None));
}
