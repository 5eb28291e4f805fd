//! Texts of `say`.

use super::ui_text::tr;
use crate::exit::{CliExit, CliFailure};
use std::fmt;
use std::path::Path;
use throughline::voice::VoiceError;

/// Standard input is a terminal where a text was expected.
pub(crate) fn say_reads_stdin() -> String {
    tr!("reading a text from standard input; end it with Ctrl-D", "正在从标准输入读取文本，按 Ctrl-D 结束")
}

/// The text has no spoken part.
pub(crate) fn nothing_to_say() -> CliFailure {
    CliFailure::usage(
        tr!("there is nothing to say", "没有可朗读的内容"),
        tr!("code, addresses, formulas and emoji are not spoken", "代码、网址、公式和表情符号不朗读"),
        "",
    )
}

/// The text is too long.
pub(crate) fn say_text_too_long(bytes_max: u64) -> CliFailure {
    CliFailure::usage(
        tr!("the text has more than {bytes_max} bytes", "文本超过 {bytes_max} 字节"),
        "",
        tr!("say it in several parts", "请分几次朗读"),
    )
}

/// No audio player was found.
pub(crate) fn no_player() -> CliFailure {
    CliFailure::usage(
        tr!("no program that plays sound was found", "没有找到播放声音的程序"),
        "pw-play, paplay, aplay, ffplay, afplay",
        tr!(
            "install one of them, or write a WAV file: -o speech.wav",
            "请安装其中一个，或写入 WAV 文件：-o speech.wav"
        ),
    )
}

/// The sound would go to a terminal.
pub(crate) fn sound_on_terminal() -> CliFailure {
    CliFailure::usage(
        tr!("a terminal cannot show sound", "终端无法显示声音"),
        "",
        "throughline say … -o - | aplay",
    )
}

/// The file cannot be written.
pub(crate) fn sound_not_written(file: &Path, error: &dyn fmt::Display) -> CliFailure {
    let file = file.display();
    CliFailure::usage(tr!("{file} cannot be written", "无法写入 {file}"), error.to_string(), "")
}

/// The player failed.
pub(crate) fn player_failed(player: &str, error: &dyn fmt::Display) -> CliFailure {
    let failure = CliFailure::usage(
        tr!("{player} could not play the sound", "{player} 无法播放声音"),
        error.to_string(),
        tr!("write a WAV file instead: -o speech.wav", "改为写入 WAV 文件：-o speech.wav"),
    );
    CliFailure { exit: CliExit::Failed, ..failure }
}

/// The voice has sent no sound.
pub(crate) fn no_sound() -> CliFailure {
    unusable_sound(&tr!("it sent no sound", "它没有发出声音"))
}

/// The sentences have different sample rates or formats.
pub(crate) fn mixed_sound() -> CliFailure {
    unusable_sound(&tr!(
        "its WAV files are not 16-bit mono of one sample rate",
        "它的 WAV 文件不是同一采样率的 16 位单声道"
    ))
}

/// The formats of the voice's sound cannot be joined.
pub(crate) fn unusable_sound(why: &str) -> CliFailure {
    let failure = CliFailure::usage(
        tr!("the voice's sound cannot be used", "无法使用这个语音的声音"),
        why,
        tr!("`say` needs WAV with 16-bit samples, mono", "`say` 需要 16 位单声道的 WAV"),
    );
    CliFailure { exit: CliExit::Failed, ..failure }
}

/// The voice is not available, or has failed.
pub(crate) fn voice_failed(error: &VoiceError) -> CliFailure {
    let english = error.remedy();
    let remedy = match error {
        VoiceError::NotConfigured { .. } => {
            tr!(
                "{english}; docs/voice.md has examples",
                "在 throughline.toml 里添加 [voices.名称]，示例见 docs/voice.md"
            )
        }
        VoiceError::Unknown { .. } => tr!("{english}", "请用其中一个名称，或 `default`"),
        VoiceError::Ambiguous { .. } => {
            tr!("--voice NAME, or call one of them `default`", "--voice 名称，或把其中一个命名为 `default`")
        }
        VoiceError::Busy { .. } => tr!("{english}", "请稍后再试，或调高 concurrent_max"),
        VoiceError::Engine { .. } => tr!("{english}", "请检查 throughline.toml 里这个服务器的地址和密钥"),
        VoiceError::Program { .. } => tr!("{english}", "请用相同的参数手动运行这个程序"),
        _ => tr!("{english}", ""),
    };
    let what = match error {
        VoiceError::NotConfigured { .. } => tr!("no voice is configured", "没有配置语音"),
        VoiceError::Unknown { name, .. } => tr!("there is no voice `{name}`", "没有语音 `{name}`"),
        VoiceError::Ambiguous { .. } => {
            tr!("there are several voices, and none is named", "有多个语音，但没有指定哪一个")
        }
        _ => tr!("the voice did not speak", "语音没有朗读"),
    };
    let why = match error {
        VoiceError::NotConfigured { .. } => String::new(),
        VoiceError::Unknown { names, .. } | VoiceError::Ambiguous { names } => names.clone(),
        other => other.to_string(),
    };
    let exit = match error {
        VoiceError::Engine { .. } | VoiceError::Program { .. } | VoiceError::Busy { .. } => CliExit::Failed,
        _ => CliExit::Usage,
    };
    CliFailure { exit, ..CliFailure::usage(what, why, remedy) }
}
