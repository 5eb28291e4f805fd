//! `throughline say`, on the real binary, with programs as voices and players.

#![cfg(unix)]

use crate::support::{install_program, throughline};
use std::path::Path;

/// A voice that writes its text as samples, and one that fails.
const CONFIG: &str = "[voices.default]\nkind = \"command\"\nargv = [\"cat\"]\nformat = \"pcm\"\n\
                      [voices.broken]\nkind = \"command\"\nargv = [\"sh\", \"-c\", \"echo no voice >&2; exit 3\"]\n";
const REPLY: &str = "# Weather\nIt is **22 °C** in [Paris](https://x.org).\n```\nno\n```\n- 今天：晴 ☀️\n";

/// Exit code, standard output and standard error.
type Run = (Option<i32>, Vec<u8>, String);

/// Runs `say` with the configuration, in its folder.
fn say(arguments: &[&str], input: &str, prepare: impl Fn(&Path), after: impl Fn(&Path)) -> Run {
    let (mut command, folder) = throughline();
    std::fs::write(folder.path().join("throughline.toml"), CONFIG).unwrap();
    prepare(folder.path());
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", folder.path().join("bin").display()));
    let output = command.arg("say").args(arguments).write_stdin(input).output().unwrap();
    after(folder.path());
    (output.status.code(), output.stdout, String::from_utf8(output.stderr).unwrap())
}

fn nothing(_: &Path) {}

/// Samples have two bytes: a sentence of this voice whose text has an odd number is filled up.
#[track_caller]
fn check_wav(wav: &[u8], samples: &str) {
    assert_eq!((&wav[..4], &wav[8..16]), (&b"RIFF"[..], &b"WAVEfmt "[..]));
    assert_eq!(String::from_utf8_lossy(&wav[44..]), samples);
}

#[test]
fn say_prints_sentences_without_a_voice() {
    for arguments in [&["--text", "-"][..], &["--dry-run"]] {
        let (code, sentences, _) = say(arguments, REPLY, nothing, nothing);
        assert_eq!(code, Some(0));
        assert_eq!(String::from_utf8(sentences).unwrap(), "Weather\nIt is 22 °C in Paris.\n今天：晴\n");
    }
}

#[test]
fn say_voices_each_sentence_and_writes_one_file() {
    let written = |folder: &Path| {
        let wav = std::fs::read(folder.join("out.wav")).unwrap();
        check_wav(&wav, "Hello there.\n\0Bye.\n\0");
        assert_eq!(wav[40..44], 20_u32.to_le_bytes(), "the length of its samples");
    };
    let (code, _, errors) = say(&["Hello there. Bye.", "-o", "out.wav"], "", nothing, written);
    assert_eq!(code, Some(0), "{errors}");

    let (code, wav, _) = say(&["-o", "-"], "Hello there. Bye.", nothing, nothing);
    assert_eq!(code, Some(0));
    check_wav(&wav, "Hello there.\n\0Bye.\n\0");
}

#[test]
fn say_plays_all_sentences_with_an_installed_player() {
    let install = |folder: &Path| {
        std::fs::create_dir(folder.join("bin")).unwrap();
        for player in ["pw-play", "afplay"] {
            let played = folder.join("played");
            // `pw-play -` reads standard input, `afplay FILE` a file.
            let script = format!("cat \"$1\" > {}", played.display());
            install_program(&folder.join("bin").join(player), &script);
        }
    };
    let played = |folder: &Path| check_wav(&std::fs::read(folder.join("played")).unwrap(), "Hello.\n\0");
    let (code, _, errors) = say(&["Hello."], "", install, played);
    assert_eq!(code, Some(0), "{errors}");
}

#[test]
fn say_errors_leave_the_old_file_unchanged() {
    let old = |folder: &Path| std::fs::write(folder.join("out.wav"), "old").unwrap();
    let still = |folder: &Path| assert_eq!(std::fs::read(folder.join("out.wav")).unwrap(), b"old");
    for (arguments, exit, expected) in [
        (&["```\ncode\n```", "-o", "out.wav"][..], 1, "there is nothing to say"),
        (&["Hi.", "--voice", "nosuch", "-o", "out.wav"], 1, "there is no voice `nosuch`"),
        (&["Hi.", "--voice", "broken", "-o", "out.wav"], 2, "it exited with code 3: no voice"),
        (&["Hi.", "--lang", "zh", "--voice", "nosuch", "-o", "out.wav"], 1, "没有语音 `nosuch`"),
    ] {
        let (code, _, errors) = say(arguments, "", old, still);
        assert_eq!(code, Some(exit), "{errors}");
        assert!(errors.contains(expected), "{errors} is not about {expected}");
    }
    let without = |folder: &Path| std::fs::write(folder.join("throughline.toml"), "").unwrap();
    let (code, _, errors) = say(&["Hi.", "-o", "out.wav"], "", without, nothing);
    assert_eq!(code, Some(1));
    assert!(errors.contains("no voice is configured") && errors.contains("[voices.NAME]"), "{errors}");
}
