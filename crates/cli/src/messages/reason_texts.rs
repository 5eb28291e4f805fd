//! Reasons below a failure: faults of a backup, a file of another client, a configuration or a picture.

use super::UiText;
use super::ui_text::{UiLanguage, tr, words};
use std::fmt::Display;
use std::path::Path;

words! {
    probe_yes: "yes", "是";
    probe_no: "no", "否";
    probe_unclear: "unclear", "不明";
    probe_not_tested: "not tested", "未测试";
}

/// Above the table of `probe`.
pub(crate) fn probe_heading(upstream: &str, dialect: &dyn Display, model: &str, requests: u32) -> String {
    tr!(
        "{upstream} ({dialect}), {model}, {requests} requests\n\n",
        "{upstream}（{dialect}），{model}，{requests} 次请求\n\n"
    )
}

/// The list of a backup is longer than any that a server writes.
pub(crate) fn list_too_long(list: &Path, bytes_max: u64) -> String {
    let list = list.display();
    tr!("{list} is longer than {bytes_max} bytes", "{list} 超过 {bytes_max} 字节")
}

/// The backup is of another release.
pub(crate) fn other_backup_format(found: u32, read: u32) -> String {
    tr!(
        "its format is version {found}, and this program reads {read}",
        "它的格式是第 {found} 版，本程序能读的是第 {read} 版"
    )
}

/// A file of the backup has changed.
pub(crate) fn damaged_file(file: &Path) -> String {
    let file = file.display();
    tr!("{file} is damaged: it is not the file that was saved", "{file} 已损坏：它不是当时保存的文件")
}

/// The list of the backup leads out of it.
pub(crate) fn path_outside(path: &str) -> String {
    tr!("its list names `{path}`, which is no path in it", "它的清单里有 `{path}`，这不是备份内的路径")
}

/// The folder for a backup has something in it.
pub(crate) fn folder_not_empty() -> String {
    tr!("the folder is not empty", "文件夹不是空的")
}

/// The database to back up does not exist.
pub(crate) fn no_file(file: &Path) -> String {
    let file = file.display();
    tr!("there is no {file}", "没有 {file}")
}

/// A thread ended in the middle of its work.
pub(crate) fn ended_unexpectedly() -> String {
    tr!("it ended unexpectedly", "它意外终止了")
}

/// Remedy for a folder that is not a backup, or a damaged one.
pub(crate) fn choose_another_backup() -> String {
    tr!("choose another backup; nothing has been changed", "请选择另一个备份；没有改动任何内容")
}

/// A server has the data folder.
pub(crate) fn server_uses_data() -> String {
    tr!("a server uses this data folder", "有服务器正在使用这个数据目录")
}

/// Remedy for that.
pub(crate) fn stop_the_server_first() -> String {
    tr!("stop the server, and restore then", "请先停止服务器，再恢复")
}

/// Files that a restore would replace.
pub(crate) fn already_there(names: &str) -> String {
    tr!("there is already {names}", "已存在 {names}")
}

/// Two ways to restore nevertheless.
pub(crate) fn force_or_other_folder() -> String {
    tr!(
        "--force moves it to a folder beside it; THROUGHLINE_DATA names another data folder",
        "--force 会把它移到旁边的文件夹；也可以用 THROUGHLINE_DATA 指定另一个数据目录"
    )
}

/// A file could not be moved or written in the middle of a restore.
pub(crate) fn restore_again() -> String {
    tr!("correct that, and restore again with --force", "解决后用 --force 再恢复一次")
}

/// A present configuration stays.
pub(crate) fn settings_not_replaced(present: &Path, saved: &Path) -> String {
    let (present, saved) = (present.display(), saved.display());
    tr!(
        "{present} was not replaced; the one of the backup is {saved}",
        "没有替换 {present}；备份中的那份是 {saved}"
    )
}

/// The configuration of the backup was written.
pub(crate) fn settings_restored(file: &Path) -> String {
    let file = file.display();
    tr!("the configuration is in {file}", "配置在 {file}")
}

/// A file of another client cannot be read.
pub(crate) fn not_json(error: &dyn Display) -> String {
    tr!("it is not JSON: {error}", "它不是 JSON：{error}")
}

/// None of the known lists is in it.
pub(crate) fn lists_no_servers() -> String {
    tr!(
        "it has no \"mcpServers\" (Claude, Cursor) or \"servers\" (VS Code)",
        "其中没有 \"mcpServers\"（Claude、Cursor）或 \"servers\"（VS Code）"
    )
}

/// The list is there and has nothing in it.
pub(crate) fn server_list_empty() -> String {
    tr!("its list of servers is empty", "它的服务器列表是空的")
}

/// A server is no object.
pub(crate) fn server_is_no_object(name: &str) -> String {
    tr!("`{name}` is not an object", "`{name}` 不是对象")
}

/// A server is neither a program nor an address.
pub(crate) fn server_without_endpoint(name: &str) -> String {
    tr!("`{name}` has neither \"command\" nor \"url\"", "`{name}` 既没有 \"command\" 也没有 \"url\"")
}

/// A note about a server of an older transport.
pub(crate) fn older_transport() -> String {
    tr!(
        "its type is `sse`, an older transport; Throughline speaks streamable HTTP",
        "它的类型是 `sse`，属于旧的传输方式；Throughline 使用 streamable HTTP"
    )
}

/// A note about an argument that is not taken over.
pub(crate) fn argument_left_out(number: usize) -> String {
    tr!("argument {number} looks like a secret and was left out", "第 {number} 个参数看起来是密钥，没有保留")
}

/// A name of the configuration that must be a table is another value.
pub(crate) fn no_table(name: &str) -> String {
    tr!("`{name}` is not a table", "`{name}` 不是表")
}

/// A setting cannot have this value.
pub(crate) fn no_such_value(key: &str, value: &dyn Display) -> String {
    tr!("`{key}` cannot be {value}", "`{key}` 不能是 {value}")
}

/// A response of the server that no route sends.
pub(crate) fn response_too_long(mebibytes: usize) -> String {
    tr!("the response has more than {mebibytes} MiB", "响应超过 {mebibytes} MiB")
}

/// A picture is too large.
pub(crate) fn picture_too_large(mebibytes: u64, mebibytes_max: u64) -> String {
    tr!(
        "it has {mebibytes} MiB; at most {mebibytes_max} are sent",
        "它有 {mebibytes} MiB；最多发送 {mebibytes_max} MiB"
    )
}

/// The file is no picture that models take.
pub(crate) fn no_picture_format() -> String {
    tr!("it is not png, jpeg, gif or webp", "它不是 png、jpeg、gif 或 webp")
}

/// A conversation that was imported is not in the store.
pub(crate) fn lost_after_import() -> String {
    tr!("it is not there after it was taken in", "导入之后没有找到它")
}

/// The limit on threads of this process.
pub(crate) fn no_further_thread() -> String {
    tr!("the system gives no further thread (EAGAIN)", "系统不再提供更多线程（EAGAIN）")
}

/// The certificate of the running server cannot be read.
pub(crate) fn certificate_unusable(file: &Path, why: &str) -> String {
    let file = file.display();
    tr!("the certificate {file}: {why}", "证书 {file}：{why}")
}

pub(crate) fn no_tls_provider() -> String {
    tr!("there is no provider for TLS", "没有可用的 TLS 实现")
}

/// A collector of traces wants another protocol.
pub(crate) fn other_protocol(wanted: &str, supported: &str) -> String {
    tr!("`{wanted}` is not spoken here, but `{supported}`", "这里不支持 `{wanted}`，支持 `{supported}`")
}
