//! Output of `mock`.

use super::ui_text::tr;
use std::fmt::Display;

/// The model that answers if `--quirk` is given.
pub(crate) fn mock_capable_model() -> String {
    tr!("a capable model", "一个能力完整的模型")
}

/// The default model.
pub(crate) fn mock_demo_model() -> String {
    tr!("the demo model", "演示模型")
}

/// The first line.
pub(crate) fn mock_serves(what: &str, quirks: &str, origin: &str) -> String {
    if quirks.is_empty() {
        tr!("serving {what} at {origin}\n", "{what}正在 {origin} 提供服务\n")
    } else {
        tr!("serving {what} with {quirks} at {origin}\n", "{what}（{quirks}）正在 {origin} 提供服务\n")
    }
}

/// A response was sent to its end.
pub(crate) fn exchange_complete() -> String {
    tr!("complete", "完整发出")
}

/// The client has disconnected.
pub(crate) fn exchange_left() -> String {
    tr!("the client left", "客户端已断开")
}

/// The script breaks the connection.
pub(crate) fn exchange_broken() -> String {
    tr!("broken off by the script", "按脚本中断")
}

/// The server ends.
pub(crate) fn exchange_stopped() -> String {
    tr!("stopped", "已停止")
}

/// A provider would refuse the request.
pub(crate) fn exchange_refused(why: &dyn Display) -> String {
    tr!(": refused, {why}", "：已拒绝，{why}")
}

/// Length of a response.
pub(crate) fn bytes_sent(count: u64) -> String {
    tr!("{count} bytes", "{count} 字节")
}
