//! `throughline mock`: the scriptable upstream as a server.

use crate::args::MockArgs;
use crate::exit::{CliExit, CommandResult};
use crate::messages;
use std::sync::Arc;
use throughline_testkit::{
    ExchangeEnd, FakeDialect, FakeUpstream, FakeUpstreamHandle, HttpExchange, ScenarioRules,
};

/// Serves until Ctrl-C, and says what is asked and how it ends.
pub(crate) async fn run(args: &MockArgs) -> CommandResult {
    let mut stop_signals = crate::interrupt::stop_signals().map_err(|error| messages::no_signals(&error))?;
    let upstream = FakeUpstream::on_address(args.listen);
    let served = match &args.script {
        Some(path) => {
            upstream.serve(ScenarioRules::load(path).map_err(|why| messages::bad_script(&why))?).await
        }
        None => upstream.serve(throughline_testkit::demo::DemoModel::paced()).await,
    };
    let handle = Arc::new(served.map_err(|error| messages::cannot_listen(args.listen, &error))?);
    print!("{}", greeting_text(&handle, args));
    let log = async {
        for number in 1.. {
            let request_seen = handle.wait_for_request(number).await;
            println!("#{number} {} {}", request_seen.request.method, request_seen.request.path);
            let handle = handle.clone();
            tokio::spawn(async move {
                let ending = handle.wait_for_end(number).await;
                println!("#{number} {}", ending_text(&handle.wait_for_request(number).await, ending));
            });
        }
    };
    tokio::select! {
        () = log => {}
        _ = stop_signals.recv() => {}
    }
    Ok(CliExit::Done)
}

fn greeting_text(handle: &FakeUpstreamHandle, args: &MockArgs) -> String {
    let what = match &args.script {
        Some(path) => path.display().to_string(),
        None => "the demo model".to_owned(),
    };
    let mut text = format!("serving {what} at {}\n", handle.origin());
    for dialect in FakeDialect::ALL {
        text.push_str(&format!("  {:<17} {}\n", dialect.name(), handle.base_url(dialect)));
    }
    let url = handle.base_url(FakeDialect::OpenaiChat);
    text.push_str(&format!(
        "try: throughline ask --base-url {url} --api openai-chat --model demo \"hello\"\n"
    ));
    text
}

fn ending_text(exchange: &HttpExchange, ending: ExchangeEnd) -> String {
    let dialect = exchange.dialect.map(|dialect| format!("{dialect}, ")).unwrap_or_default();
    let status = exchange.status.map(|status| format!("{status}, ")).unwrap_or_default();
    let how = match ending {
        ExchangeEnd::Complete => "complete",
        ExchangeEnd::ClientDisconnected => "the client left",
        ExchangeEnd::Broken(_) => "broken off by the script",
        ExchangeEnd::Stopped => "stopped",
    };
    let request_seen = match (&exchange.violation, &exchange.seen) {
        (Some(violation), _) => format!(": refused, {violation}"),
        (None, Some(seen)) => format!(": {}", crate::plain::one_line(seen.user_text())),
        (None, None) => String::new(),
    };
    format!("{dialect}{status}{} bytes, {how}{request_seen}", exchange.sent)
}
