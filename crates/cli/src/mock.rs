//! `throughline mock`: the scriptable upstream as a server.

use crate::args::Mock;
use crate::exit::{Ended, Exit};
use crate::messages;
use std::sync::Arc;
use throughline_testkit::{Dialect, Ending, Exchange, Rules, Upstream, UpstreamHandle};

/// Serves until Ctrl-C, and says what is asked and how it ends.
pub async fn run(args: &Mock) -> Ended {
    let mut wishes = crate::interrupt::wishes().map_err(|error| messages::no_signals(&error))?;
    let upstream = Upstream::at(args.listen);
    let served = match &args.script {
        Some(path) => upstream.serve(Rules::load(path).map_err(|why| messages::bad_script(&why))?).await,
        None => upstream.serve(throughline_testkit::demo::Demo::lively()).await,
    };
    let handle = Arc::new(served.map_err(|error| messages::cannot_listen(args.listen, &error))?);
    print!("{}", greeting(&handle, args));
    let log = async {
        for number in 1.. {
            let asked = handle.asked(number).await;
            println!("#{number} {} {}", asked.request.method, asked.request.path);
            let handle = handle.clone();
            tokio::spawn(async move {
                let ending = handle.ended(number).await;
                println!("#{number} {}", ended(&handle.asked(number).await, ending));
            });
        }
    };
    tokio::select! {
        () = log => {}
        _ = wishes.recv() => {}
    }
    Ok(Exit::Done)
}

fn greeting(handle: &UpstreamHandle, args: &Mock) -> String {
    let what = match &args.script {
        Some(path) => path.display().to_string(),
        None => "the demo model".to_owned(),
    };
    let mut text = format!("serving {what} at {}\n", handle.origin());
    for dialect in Dialect::ALL {
        text.push_str(&format!("  {:<17} {}\n", dialect.name(), handle.base_url(dialect)));
    }
    let url = handle.base_url(Dialect::OpenaiChat);
    text.push_str(&format!(
        "try: throughline ask --base-url {url} --api openai-chat --model demo \"hello\"\n"
    ));
    text
}

fn ended(exchange: &Exchange, ending: Ending) -> String {
    let dialect = exchange.dialect.map(|dialect| format!("{dialect}, ")).unwrap_or_default();
    let status = exchange.status.map(|status| format!("{status}, ")).unwrap_or_default();
    let how = match ending {
        Ending::Complete => "complete",
        Ending::ClientGone => "the client left",
        Ending::Broken(_) => "broken off by the script",
        Ending::Stopped => "stopped",
    };
    let asked = match (&exchange.violation, &exchange.seen) {
        (Some(violation), _) => format!(": refused, {violation}"),
        (None, Some(seen)) => format!(": {}", crate::plain::short(seen.user_text())),
        (None, None) => String::new(),
    };
    format!("{dialect}{status}{} bytes, {how}{asked}", exchange.sent)
}
