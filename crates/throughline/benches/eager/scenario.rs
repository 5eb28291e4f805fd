//! Six kinds of steps, those without a win included.

use schemars::JsonSchema;
use serde::Deserialize;

/// Behaviour of a model in one step.
pub struct Scenario {
    /// Name as in the table of results.
    pub name: &'static str,
    /// Parts of the reply, in order.
    pub beats: &'static [Beat],
}

/// One part of a reply.
#[derive(Clone, Copy)]
pub enum Beat {
    /// A call whose arguments arrive over `arguments_s` seconds, of a tool that runs for `takes_s` seconds.
    Call { tool: &'static str, arguments_s: f64, takes_s: f64 },
    /// Visible text.
    Prose { seconds: f64 },
    /// A pause before the finish.
    Silence { seconds: f64 },
}

/// Arguments of the tools.
#[derive(Deserialize, JsonSchema)]
pub struct Arguments {
    /// Duration of the tool.
    pub ms: u64,
    /// No two calls are equal: the loop guard is not what is measured.
    #[serde(rename = "number")]
    pub _number: usize,
    /// Makes the arguments long.
    #[serde(rename = "filling")]
    pub _filling: String,
}

const LOOK: &str = "bench_look";
const SAVE: &str = "bench_save";
const FACE: &str = "bench_face";

/// Pause between the last call and the finish.
const TAIL: Beat = Beat::Silence { seconds: 0.2 };

const fn call(tool: &'static str, arguments_s: f64, takes_s: f64) -> Beat {
    Beat::Call { tool, arguments_s, takes_s }
}

/// The table.
pub const SCENARIOS: [Scenario; 7] = [
    Scenario {
        name: "3 calls, 1 s of arguments each, 1 s tools",
        beats: &[call(LOOK, 1.0, 1.0), call(LOOK, 1.0, 1.0), call(LOOK, 1.0, 1.0), TAIL],
    },
    Scenario {
        name: "5 reads, 0.33 s of arguments, 0.3 s tools",
        beats: &[
            call(LOOK, 0.33, 0.3),
            call(LOOK, 0.33, 0.3),
            call(LOOK, 0.33, 0.3),
            call(LOOK, 0.33, 0.3),
            call(LOOK, 0.33, 0.3),
            TAIL,
        ],
    },
    Scenario {
        name: "slow 5 s search first, then small calls",
        beats: &[
            call(LOOK, 0.5, 5.0),
            call(LOOK, 0.33, 0.2),
            call(LOOK, 0.33, 0.2),
            call(LOOK, 0.33, 0.2),
            TAIL,
        ],
    },
    Scenario {
        name: "one 2 s call, then 2 s of prose",
        beats: &[call(LOOK, 0.5, 2.0), Beat::Prose { seconds: 2.0 }, TAIL],
    },
    Scenario {
        name: "read, then write with 8 s of arguments",
        beats: &[call(LOOK, 0.4, 0.3), call(SAVE, 8.0, 0.1), TAIL],
    },
    Scenario {
        name: "avatar expression, then 4 s of prose",
        beats: &[call(FACE, 0.3, 0.05), Beat::Prose { seconds: 4.0 }, TAIL],
    },
    Scenario {
        name: "one read at the very end",
        beats: &[Beat::Prose { seconds: 1.0 }, call(LOOK, 0.33, 1.0), TAIL],
    },
];
