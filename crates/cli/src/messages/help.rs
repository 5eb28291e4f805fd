//! Help texts of `--help` besides the list of flags.

/// Exit codes, at the end of the main help.
pub(crate) const EXIT_CODES: &str = "\
Without a configuration the built-in demo model answers: `throughline chat` needs no key and no network.

Examples:
  throughline chat
  throughline ask \"What is the weather in Beijing, Paris and San Francisco?\"
  throughline ask --model deepseek/deepseek-chat --events \"…\" | jq -c 'select(.type==\"tool_result\")'
  throughline decode --api openai-chat < recorded.sse

Exit codes:
  0    done; also if the reader of a pipe leaves before the end (`| head`)
  1    wrong arguments, wrong configuration, or unreadable input
  2    the turn ended in an error (the upstream failed, the stream broke)
  3    the answer was cut off: tool-round limit or length limit
  4    `tools call`: the tool did not succeed; `parse`: a call would be denied or not start
  130  stopped by Ctrl-C or SIGTERM

Environment:
  THROUGHLINE_CONFIG      configuration file (else ./throughline.toml, if there is one)
  THROUGHLINE_MODEL, THROUGHLINE_AGENT, THROUGHLINE_MODE, THROUGHLINE_STREAMING
                          as --model, --agent, --mode, --streaming; the flag wins. MODE and STREAMING also for one
                          upstream: THROUGHLINE_STREAMING_OLLAMA=off
  THROUGHLINE_BASE_URL_…  another address for an upstream: THROUGHLINE_BASE_URL_OPENAI=http://localhost:4000/v1
  THROUGHLINE_LANG        as --lang: en or zh; else LC_ALL, LC_MESSAGES or LANG decides
  NO_COLOR, TERM=dumb     plain text without repainting";

/// Long help of `decode`.
pub(crate) const DECODE_HELP: &str = "\
Examples:
  curl -sN https://api.openai.com/v1/chat/completions -d @request.json … | throughline decode --api openai-chat
  throughline decode < recorded.sse                              finds the wire format out by itself
  throughline decode --api anthropic --strict < recorded.sse     exit code 2 unless the reply is complete
  throughline decode --api ollama --events < recorded.ndjson     one JSON line per decoded event
  throughline decode --api openai-chat --recover < leaked.sse    tool calls written as text become calls

Names of wire formats:
  openai-chat (and all compatible servers), openai-responses, anthropic, gemini (SSE or JSON array), ollama, cohere,
  bedrock-converse, bedrock-anthropic (AWS event-stream frames)

The object printed:
  text, reasoning, refusal   all deltas joined
  tool_calls                 [{id, name, arguments}], and `raw` where `arguments` is null: a call that was cut off
                             or is not JSON is never completed, dropped or turned into {}
  finish_reason              stop length tool_calls content_filter pause error other, or null; `finish_reason_raw`
                             is the upstream's own word
  end                        complete, truncated (the body just stopped) or error
  error, usage               as the upstream sent them, or null
  choices                    all choices, if there is more than one
  hosted, images, audio, citations, problems
                             only if present: tools that the provider ran, images, audio, sources, and what was
                             wrong with the stream and how it was handled

Exit codes: 0 if something could be decoded, even an error or a body that is cut off (with --strict 2); 1 for wrong
arguments or unreadable input; 2 if nothing could be decoded: standard error says what the input may be instead.";

/// Long help of `ask`.
pub(crate) const ASK_HELP: &str = "\
Text goes to standard output as it streams; tool calls, notices and errors go to standard error.

Examples:
  throughline ask \"What time is it in Tokyo?\"
  git diff | throughline ask \"Write a commit message for this.\"     standard input follows the prompt
  throughline ask -c \"And in Osaka?\"                 continues the last conversation
  throughline ask -s \"Answer in one line.\" -f notes.txt \"What is to be done?\"
  throughline ask --model ollama/qwen3 \"…\"               any known upstream (see `throughline upstreams`)
  throughline ask --json \"…\" | jq '.blocks[]'            the whole message at the end, as one object
  throughline ask --events \"…\"                           the turn's log as it grows, one JSON object per line
  throughline ask --approve \"Put lunch in my calendar\"   allow calls with side effects
  throughline ask -a plan.png \"What is this?\"
  git diff | throughline ask -t review -p language=Rust    prompts/review.md with its placeholders filled in
  throughline ask --schema person.json \"Who wrote Dune?\"    JSON that fits the schema, and nothing else

Conversations are kept in the server's store: -c and --resume continue them, `history` and `replay` show them,
--no-log keeps nothing. While a server has the store open, the question goes through that server.
With --schema the answer is checked. The model is told once what does not fit; if the second answer does not fit
either, nothing is printed and the exit code is 2.
Calls with side effects ask for approval on the terminal. Without a terminal they are denied, and the model and
standard error receive the reason; --approve allows all of them.
Ctrl-C stops the turn: running tools are stopped, and the message reports the outcome of each. A second Ctrl-C exits
at once.

Exit codes: 0 completed, 1 usage or configuration, 2 ended in an error, 3 cut by a limit or by length, 130 stopped.";

/// Long help of `templates`.
pub(crate) const TEMPLATES_HELP: &str = "\
A template is a text file NAME.md or NAME.txt in the folder `prompts` next to the configuration file (without one: in
the current folder), or in `prompts` of the data folder. {{input}} stands for the prompt; any other {{name}} takes its
value from -p name=value. A template without {{input}} is followed by the prompt. In a chat the first message goes into
the template.

Examples:
  throughline templates
  git diff | throughline ask -t review -p language=Rust
  throughline chat -t tutor -p subject=algebra";

/// Long help of `chat`.
pub(crate) const CHAT_HELP: &str = "\
Examples:
  throughline chat                                the demo model, or the agent `default` of throughline.toml
  throughline chat --model deepseek/deepseek-chat --mode native
  throughline chat -c                             continue the last conversation; a reply that was cut off goes on
  throughline chat -t tutor                       the first message goes into prompts/tutor.md
  printf 'hello\\nwhat time is it?\\n' | throughline chat    one message per line, plain text out

Conversations are kept in the server's store; --no-log keeps nothing. While a server has the store open, the chat goes
through that server.
In the chat: /help lists the commands, Tab suggests or completes, Alt-Enter starts a new line, Up recalls,
Ctrl-C stops the reply (again: exits), Ctrl-D exits.";

/// Long help of `say`.
pub(crate) const SAY_HELP: &str = "\
Speaks what of a Markdown text is for the ear: no markup, code, addresses, formulas or emoji. Each sentence is sent to
the voice by itself, so the first one is heard soon. Voices are sections [voices.NAME] of the configuration
(docs/voice.md). The sound is played by pw-play, paplay, aplay, ffplay or afplay, whichever is installed.

Examples:
  throughline say \"Dinner is ready.\"
  throughline ask \"Tell me a story.\" | throughline say
  throughline say --voice piper -o story.wav - < story.md
  throughline say --text - < reply.md                what would be said

Exit codes: 0 said, 1 usage or configuration, 2 the voice or the player failed, 130 stopped.";

/// Long help of `parse`.
pub(crate) const PARSE_HELP: &str = "\
Shows each call with its position, its arguments and its outcome: it would run, ask first, be denied, or not start
(unknown tool, tool not offered, arguments that do not fit the schema, malformed block). Nothing runs.
Calls in the native markup of models (Hermes, DeepSeek, Kimi, ...) are found as well and reported as leaked.

Examples:
  throughline parse reply.txt
  pbpaste | throughline parse
  throughline parse --agent work --protocol vcp --json reply.txt | jq '.requests[] | {tool, outlook, why}'

Exit codes: 0 no call is refused, 1 usage or configuration, 4 at least one call would be denied or not start.";

/// Long help of `tools`.
pub(crate) const TOOLS_HELP: &str = "\
Examples:
  throughline tools list
  throughline tools show demo.weather
  throughline tools prompt --protocol vcp         the prompt of a model without native tool calls
  throughline tools call demo.weather '{\"city\": \"Paris\"}'
  throughline tools call files.read '{\"path\": \"README.md\"}' --json

`call` checks the arguments against the tool's schema first. A tool with side effects asks for approval on the
terminal; without a terminal it runs only with --approve. Exit code 4: the tool did not succeed.";

/// Long help of `mcp`.
pub(crate) const MCP_HELP: &str = "\
Examples:
  throughline mcp import claude_desktop_config.json             print the sections
  throughline mcp import ~/.cursor/mcp.json --write             add them to throughline.toml
  throughline mcp import .vscode/mcp.json --write

Values of variables and headers become $NAME unless they are plainly no secrets, and arguments that look like secrets
are replaced by REPLACE_ME: no secret is printed or written. The command lists the variables to set.";

/// Long help of `backup`.
pub(crate) const BACKUP_HELP: &str = "\
Copies the database (consistently, also while the server runs), uploaded files, stored keys of models, remembered
approvals, accepted tool definitions, the first key and throughline.toml, and writes a list with checksums at the end.
The folder holds secrets and is readable only by you. A PostgreSQL database is not copied: the command prints the
pg_dump line.

Examples:
  throughline backup /backups/2026-11-23
  throughline restore /backups/2026-11-23";

/// Long help of `restore`.
pub(crate) const RESTORE_HELP: &str = "\
Checks every file of the backup first, and changes nothing if one is damaged or missing. Stop the server before: while
it runs, restore refuses. Where something is stored already, it refuses without --force; with --force the present data
are moved to a folder named replaced-TIME in the data folder. An existing throughline.toml is never replaced.

Example:
  THROUGHLINE_DATA=/srv/throughline throughline restore /backups/2026-11-23";

/// Long help of `upstreams`.
pub(crate) const UPSTREAMS_HELP: &str = "\
Models are named UPSTREAM/MODEL. Every listed upstream works without configuration once its key variable is set;
`[upstreams.NAME]` in throughline.toml changes one or adds your own.

Examples:
  throughline upstreams
  throughline upstreams --json
  DEEPSEEK_API_KEY=… throughline ask --model deepseek/deepseek-chat \"hello\"";

/// Long help of `probe`.
pub(crate) const PROBE_HELP: &str = "\
Asks for a streamed and a whole reply, two tool calls, their result, a forced and a forbidden call, JSON by a schema and
a picture: 8 requests, at most 16 if some are refused and repeated in another form. Rows marked `!` are departures from
the API. Without --write the settings that make up for them are printed.

Examples:
  throughline probe deepseek
  throughline probe ollama/qwen3 --write
  throughline probe mine --base-url http://127.0.0.1:9000/v1 --api openai-chat --model m --json";

/// Long help of `connect`.
pub(crate) const CONNECT_HELP: &str = "\
Without UPSTREAM it lists the upstreams that are known by name, with those that run on this machine (Ollama, LM Studio,
vLLM, llama.cpp at their usual addresses) and their models, and those whose key is there.

Lists the upstream's models and sends the chosen one a short prompt before it writes anything. The key is stored in the
data folder, readable only by you; an environment variable that holds a key takes precedence. The file receives the
agent's model and, with --base-url or --key-env, the upstream; its comments stay.

Examples:
  throughline connect
  throughline connect deepseek --model deepseek-chat
  pass show deepseek | throughline connect deepseek --model deepseek-chat --key-stdin
  throughline connect work --base-url http://10.0.0.5:9000/v1 --api openai-chat --model qwen3
  throughline connect deepseek --forget";

/// Long help of `doctor`.
pub(crate) const DOCTOR_HELP: &str = "\
Sends nothing to any model. Tool sources (MCP servers, commands, plugins) are started and stopped again.

Examples:
  throughline doctor
  throughline doctor --config work.toml
  throughline doctor --json | jq '.findings[] | select(.state == \"wrong\")'

Exit code 1: something in the configuration does not work.";

/// Long help of `mock`.
#[cfg(feature = "demo")]
pub(crate) const MOCK_HELP: &str = "\
An LLM upstream with scripted replies: it serves all eight wire formats on one address and rejects requests that a
real provider would reject. Point any client at it.

Examples:
  throughline mock                                          the demo model as a server, on a free port
  throughline mock --listen 127.0.0.1:9000 --script weather.toml
  throughline mock --quirk cumulative_arguments             a capable model with a quirk, for `throughline probe`
  throughline ask --base-url http://127.0.0.1:9000/v1 --api openai-chat --model mock \"hello\"

A scenario (the first matching rule answers):
  [[rules]]
  when = { contains = \"weather\", step = 1 }
  then = [ { say = \"Let me look. \" }, { call = { name = \"demo_weather\", arguments = { city = \"Paris\" } } } ]

  [[rules]]
  when = { result_of = \"demo_weather\" }
  then = { pace = { tokens_per_second = 40 }, moves = [ { say = \"Sunny.\" } ] }

  [[rules]]
  when = { contains = \"limit\" }
  then = { http = { status = 429, headers = { retry-after = \"2\" } } }

Moves: say think call parallel usage finish raw garbage ping pause wait_for error end cut stall reset.
Conditions: request step contains has_result result_of result_contains model may_call.";

/// Long help of `completions`.
pub(crate) const COMPLETIONS_HELP: &str = "\
Examples:
  throughline completions bash > ~/.local/share/bash-completion/completions/throughline
  throughline completions zsh > ~/.zfunc/_throughline
  throughline completions fish > ~/.config/fish/completions/throughline.fish";

/// Long help of `replay`.
pub(crate) const REPLAY_HELP: &str = "\
Redraws every screen of a past turn from its log, with the same code that drew it live.

Examples:
  throughline replay                           the latest turn at its original speed; pauses are cut to 5 s
  throughline replay TURN --speed 4x           four times as fast; max: without delays
  throughline replay TURN --step               event by event; the arrow keys go back and forth
  throughline replay TURN --at 12              the message as it was after event 12; --json prints its fold
  throughline ask --events \"…\" > turn.jsonl
  throughline replay --from turn.jsonl         a turn that is not in a store
  throughline replay TURN --decode-raw         decode the stored upstream bytes again; needs keep_raw in [store]

Works while a server runs: the store is only read.

Exit code: 0; 1 for wrong arguments or unreadable input; 2 if bytes now decode differently; 130 if you quit
before the end.";

/// Long help of `history`.
pub(crate) const HISTORY_HELP: &str = "\
Newest first. Works while a server runs: the store is only read.

Examples:
  throughline history                                  the latest tool calls
  throughline history --tool files.write --status error
  throughline history --limit 200 --before CURSOR      the next page; standard error names the cursor if there is one
  throughline history --turns --json | jq -r '.[].id'
  throughline replay $(throughline history --turns --limit 1 --json | jq -r '.[0].id')";

/// Long help of `export`.
pub(crate) const EXPORT_HELP: &str = "\
jsonl is complete and can be imported again with `throughline import`; markdown is one branch as readable text;
csv has the tool calls. Works while a server runs: the store is only read.

Examples:
  throughline export conv_01a1fe3a01c37659bcb2d47e8bf4ff6e -o talk.md
  throughline export conv_01a1fe3a01c37659bcb2d47e8bf4ff6e | throughline import - --store other.db
  throughline history --turns --json | jq -r '.[].conversation_id'          ids of conversations";

/// Long help of `import`.
pub(crate) const IMPORT_HELP: &str = "\
Reads the jsonl format of `throughline export` and GET /v1/conversations/ID/export, or a JSON array of OpenAI
messages. Everything gets new ids; no model is called and nothing is fetched. If a server has the store open, the
import goes through that server.

Examples:
  throughline import talk.jsonl
  throughline import messages.json --json | jq -r .id";
