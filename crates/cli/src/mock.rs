//! `throughline mock`: the scriptable upstream as a server.

use crate::args::MockArgs;
use crate::exit::{CliExit, CommandResult};
use crate::messages::{self, UiLanguage, UiText};
use crate::output::{out, outln};
use std::sync::Arc;
use throughline_testkit::{
    ExchangeEnd, FakeDialect, FakeUpstream, FakeUpstreamHandle, HttpExchange, ScenarioRules,
};

/// Serves until Ctrl-C, and prints each request and its end.
pub(crate) async fn run(args: &MockArgs) -> CommandResult {
    let mut stop_signals = crate::interrupt::stop_signals().map_err(|error| messages::no_signals(&error))?;
    let upstream = FakeUpstream::on_address(args.listen);
    let scenario = match &args.script {
        Some(path) => Some(ScenarioRules::load(path).map_err(|why| messages::bad_script(&why))?),
        None => (!args.quirk.is_empty()).then(ScenarioRules::capable),
    };
    let mut wanted = RequestWanted { model: "demo".to_owned(), key: None };
    let served = match scenario {
        Some(mut rules) => {
            rules.quirks.extend(&args.quirk);
            wanted.model = rules.models.first().cloned().unwrap_or_else(|| "any".to_owned());
            wanted.key.clone_from(&rules.key);
            upstream.serve(rules).await
        }
        None => upstream.serve(throughline_testkit::demo::DemoModel::paced()).await,
    };
    let handle = Arc::new(served.map_err(|error| messages::cannot_listen(args.listen, &error))?);
    out!("{}", greeting_text(&handle, args, &wanted));
    let log = async {
        for number in 1.. {
            let request_seen = handle.wait_for_request(number).await;
            outln!("#{number} {} {}", request_seen.request.method, request_seen.request.path);
            let handle = handle.clone();
            tokio::spawn(async move {
                let ending = handle.wait_for_end(number).await;
                outln!("#{number} {}", ending_text(&handle.wait_for_request(number).await, ending));
            });
        }
    };
    tokio::select! {
        () = log => {}
        _ = stop_signals.recv() => {}
    }
    Ok(CliExit::Done)
}

/// Parts of a request without which the script does not answer.
struct RequestWanted {
    model: String,
    key: Option<String>,
}

/// Quotes text as one word of a shell.
fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn greeting_text(handle: &FakeUpstreamHandle, args: &MockArgs, wanted: &RequestWanted) -> String {
    let what = match &args.script {
        Some(path) => path.display().to_string(),
        None if !args.quirk.is_empty() => messages::mock_capable_model(),
        None => messages::mock_demo_model(),
    };
    let quirks: Vec<String> = args.quirk.iter().map(|quirk| quirk.name()).collect();
    let mut text = messages::mock_serves(&what, &quirks.join(", "), &handle.origin());
    for dialect in FakeDialect::ALL {
        text.push_str(&format!("  {:<17} {}\n", dialect.name(), handle.base_url(dialect)));
    }
    let url = handle.base_url(FakeDialect::OpenaiChat);
    let (before, key_env) = match &wanted.key {
        Some(key) => (format!("MOCK_KEY={} ", shell_word(key)), " --key-env MOCK_KEY"),
        None => Default::default(),
    };
    text.push_str(&format!(
        "{}: {before}throughline ask --base-url {url} --api openai-chat{key_env} --model {} \"hello\"\n",
        UiText(UiLanguage::current()).try_hint(),
        shell_word(&wanted.model)
    ));
    text
}

fn ending_text(exchange: &HttpExchange, ending: ExchangeEnd) -> String {
    let dialect = exchange.dialect.map(|dialect| format!("{dialect}, ")).unwrap_or_default();
    let status = exchange.status.map(|status| format!("{status}, ")).unwrap_or_default();
    let how = match ending {
        ExchangeEnd::Complete => messages::exchange_complete(),
        ExchangeEnd::ClientDisconnected => messages::exchange_left(),
        ExchangeEnd::Broken(_) => messages::exchange_broken(),
        ExchangeEnd::Stopped => messages::exchange_stopped(),
    };
    let request_seen = match (&exchange.violation, &exchange.seen) {
        (Some(violation), _) => messages::exchange_refused(violation),
        (None, Some(seen)) => format!(": {}", crate::plain::one_line(seen.user_text())),
        (None, None) => String::new(),
    };
    format!("{dialect}{status}{}, {how}{request_seen}", messages::bytes_sent(exchange.sent))
}
