// Generated from openapi.json by `cargo xtask typescript --write`: do not edit.

/** A value of JSON. */
export type Json = string | number | boolean | null | Json[] | { [name: string]: Json };

/** An agent in detail. */
export type AgentDetail = AgentInfo & {
  /** Settings in the form of `[agents.NAME]`, defaults included. */
  settings: AgentSettings;
};

/** A field of `AgentSettings`. */
export interface AgentField {
  /** Values of a choice. */
  choices?: string[];
  /** Default that applies if the field is left empty; absent if there is none, or if the model decides. */
  default?: unknown;
  /** Purpose of the field, and the meaning of an empty value, off or 0. */
  help: string;
  /** `model`, `lines` (a list of texts), `text`, `switch`, `number`, `choice` or `json` (an object). */
  kind: string;
  /** Label for people. */
  label: string;
  /** Path in the settings. */
  path: string;
  /** Unit of a number: `ms`, `bytes` or `tokens`; absent for counts. */
  unit?: string | null;
}

/** The fields of an agent. */
export interface AgentFields {
  /**
   * Groups in the order of a form. `policy` and `tool_call.tool_toggles` are not single values and have no
   * field.
   */
  parts: FieldGroupInfo[];
}

/** An agent in short. */
export interface AgentInfo {
  /** Reason why it is unusable. */
  fault?: string | null;
  /** True for the default agent. */
  is_default: boolean;
  /** Tool-calling mode: `auto`, `native` or `text`. */
  mode: string;
  /** Its first model, as `upstream/model`. */
  model?: string | null;
  /** Name. */
  name: string;
  /** `file` if it is part of the configuration, `stored` if it was created over the API. */
  origin: string;
  /** True if it cannot be changed over the API; duplicate it instead. */
  read_only: boolean;
  /** True if the agent has tools. */
  tools_enabled: boolean;
  /** Time of the last change in milliseconds since 1970. Absent for agents of the configuration. */
  updated_at?: number | null;
  /** Version, which grows with each change. Absent for agents of the configuration. */
  version?: number | null;
  /** Likely mistakes: rules that match no tool, each with the nearest name. Absent if there are none. */
  warnings?: string[];
}

/** Preview of agent settings. */
export interface AgentPreview {
  call?: CallOutlook | null;
  /** The prompt in each mode: native, and every text protocol. */
  prompts: PromptPreview[];
  /** As they would be saved: defaults included. */
  settings: AgentSettings;
  /** The tools as the agent would find them. */
  tools: ToolList;
}

/**
 * Settings of an agent as JSON: the fields, checks and messages of `[agents.NAME]` in the configuration. See
 * docs/configuration.md for each field.
 */
export interface AgentSettings {
  /** Further fields of the request body. */
  extra?: Record<string, unknown>;
  /** Fallback models, used only before the first token. */
  fallback?: string[];
  /** Loop guard. */
  guard?: Record<string, unknown>;
  /** Limits that override those of the server. */
  limits?: Record<string, unknown>;
  /** Maximum number of tokens in one step. */
  max_output_tokens?: number | null;
  /** Tool-calling mode: `auto`, `native` or `text`. */
  mode?: "auto" | "native" | "text" | null;
  /** Model as `upstream/model`; the upstream must exist. */
  model: string;
  /** Handling of a turn whose process died, when another takes it over: `continue` or `end`. */
  on_interrupted?: "continue" | "end" | null;
  /** Rules that allow, ask about or deny tool calls; the first match decides. */
  policy?: unknown[];
  /** Template of the system prompt. */
  prompt?: string | null;
  /** Delivery of messages sent while a turn runs: `next_step` or `after_turn`. */
  steering?: "next_step" | "after_turn" | null;
  /** Temperature, 0 to 2. */
  temperature?: number | null;
  /** Use of tools. */
  tool_call?: ToolCallSettings;
}

/** Answer to a question. */
export interface AnswerLink {
  /** `approve` or `deny`. */
  decision: "approve" | "deny";
  /** Code after `#` in the link. */
  link: string;
  /** Reason; that of a denial is sent to the model. */
  reason?: string | null;
}

/** Receipt for an answered approval. */
export interface ApprovalAck {
  /**
   * `resolved`: the answer is in the log. `queued`: the question has not been asked yet; this will be its
   * answer.
   */
  status: string;
}

/** Keyword for the arguments of a remembered answer. */
export type ArgumentsKeyword = "these" | "any";

/** One message of a branch. */
export interface BranchMessage {
  /** Event of the parent after which the branch continues; absent if it continues after the last one. */
  cut_at?: number | null;
  /** The message of the turn: the user's input and the blocks of the answer. */
  message: Message;
  /** `running`, or the status at its end. */
  status: string;
  /** The turn that wrote it. */
  turn_id: string;
}

/** Messages of a branch, oldest first. */
export interface BranchMessages {
  /** `before` of the part in front of this one; absent = it begins here. */
  before?: string | null;
  /** Its last turn. */
  leaf_id?: string | null;
  /** Oldest first. */
  messages: BranchMessage[];
}

/** A part of the time. */
export interface BucketMetrics {
  /** Its calls. */
  calls: CallsMetrics;
  /** When it begins, in milliseconds since 1970. */
  from: number;
  /** Its turns. */
  turns: TurnsMetrics;
}

/** Receipt for a call's result or cancellation. */
export interface CallAck {
  /** `accepted`, `cancelling` or `ended`. */
  status: string;
}

/** Counts of calls. */
export interface CallCountsInfo {
  /** Number by status, most frequent first. */
  by_status: CountInfo[];
  /** Number by tool, most frequent first. */
  by_tool: CountInfo[];
  /** Number of all calls. */
  total: number;
}

/** A call in detail. */
export type CallDetail = CallInfo & {
  /** Its block in the message. */
  call: ToolCall;
  /** Output for people, with invisible characters spelled out. */
  output_text: string;
  /** Text that the model received as the result; absent if it has received none (yet). */
  seen_by_model?: string | null;
  /** Events of the call, in order. */
  timeline: TimelineEntry[];
};

/** A tool call in short. */
export interface CallInfo {
  /** Arguments as JSON, or the raw text if it is not JSON; cut if it is long. */
  arguments: string;
  /** The same for people: nothing in it is invisible, and JSON reads as the same value. */
  arguments_text: string;
  /** Id of the conversation. */
  conversation_id?: string | null;
  /** Run time in milliseconds. */
  duration_ms?: number | null;
  /** Effect of the tool. */
  effect: string;
  /** Error of a failed call. */
  error?: string | null;
  /** Output in short. */
  output_summary?: string | null;
  /** Source of the tool. */
  source: string;
  /** Start time, or time of announcement if it never ran, in milliseconds since 1970. */
  started_at: number;
  /** Status: that of `tool_result`, or the current activity. */
  status: string;
  /** Number of the step, from 1. */
  step: number;
  /** Id. */
  tool_id: string;
  /** Name of the tool. */
  tool_name: string;
  /** Id of the turn. */
  turn_id: string;
}

/** Expected handling of a call. */
export interface CallOutlook {
  /** `runs`, `asks`, `denied` or `not_started`. */
  outlook: string;
  /** The rule that decides: `rule:2 allow files.*` is the second of the policy. */
  rule?: string | null;
  /** Reason why it would not run. */
  why?: string | null;
}

/** Result of a call that a client was asked to run. */
export interface CallResult {
  /** True if the call took effect where the user can see it. */
  applied?: boolean | null;
  /** Output of the call, or its error: text as it is, anything else as JSON. */
  output?: string | number | boolean | Record<string, unknown> | unknown[] | null;
  /** Status of the call. */
  status: "success" | "error";
}

/** A manual tool call. */
export interface CallTool {
  /** Agent whose rules apply; absent for the server's default agent. */
  agent?: string | null;
  /** Arguments: an object that matches the tool's schema. */
  arguments?: Record<string, unknown>;
  /** Confirmation that a tool with side effects may run, or one that a rule asks about. */
  confirm?: boolean;
}

/** Metrics of calls. */
export interface CallsMetrics {
  /** Run time in milliseconds. */
  duration_ms: Percentiles;
  /** `failed` in `finished`, from 0 to 1. */
  error_rate?: number | null;
  /** Those of them that are no `success`. */
  failed: number;
  /** Those that ran to an end of their own: `success`, `error`, `timed_out` or `unknown`. */
  finished: number;
  /** All that began in the time. */
  total: number;
}

/** Settings of a new upstream. */
export interface ConnectUpstream {
  /**
   * A stored agent that is given the model, and made if there is none of the name: a copy of the one that
   * answers by default.
   */
  agent?: string | null;
  /** An address of one's own. Takes the scope `admin` on a connection from the server's own machine. */
  base_url?: string | null;
  /** Dialect of its API. Default: `openai-chat`. */
  dialect?: string | null;
  /** Its key. Absent = it needs none, or has one already. */
  key?: string | null;
  /** A model that is to answer: it is asked for a word. */
  model?: string | null;
}

/** An upstream that turns can use from now on. */
export interface ConnectedUpstream {
  /** The agent that has the model now. */
  agent?: string | null;
  /** Models that the upstream lists, newest first if it gives dates. Empty if it lists none. */
  models: string[];
  /** As it is now. */
  upstream: UpstreamInfo;
}

/** A conversation. */
export interface ConversationInfo {
  /** Milliseconds since 1970. */
  created_at: number;
  /** Id. */
  id: string;
  /** Turn that a new one continues by default. */
  leaf_id?: string | null;
  /** The turn that runs in it now. */
  running_turn_id?: string | null;
  /** Given, or the first words of the first input. */
  title: string;
  /** `given`, or `input` = the first words of the first input. */
  title_by: string;
  /** Number of turns, all branches counted. */
  turns: number;
  /** When something last happened in it, in milliseconds since 1970. */
  updated_at: number;
}

/** A conversation with all its turns. */
export type ConversationTree = ConversationInfo & {
  /** All its turns, oldest first: a tree by `parent`. */
  tree: TurnNode[];
};

/** Count of one value. */
export interface CountInfo {
  count: number;
  /** The value. */
  name: string;
}

/** A new agent. */
export interface CreateAgent {
  /** 1 to 64 letters, digits, `-`, `_` or `.`. */
  name: string;
  /** Settings of the new agent. */
  settings: AgentSettings;
}

/** A new conversation. */
export interface CreateConversation {
  /** Absent = the first words of the first input, when it comes. */
  title?: string | null;
}

/** A key that is wanted. */
export interface CreateKey {
  /** From then on it is worth nothing; milliseconds since 1970. Default: never. */
  expires_at?: number | null;
  /** Name that the owner gives the key. */
  name: string;
  /** Scopes of the key. Default: `chat`. */
  scopes?: ScopeName[] | null;
}

/** A key that was made. */
export type CreatedKey = KeyInfo & {
  /** The key itself. It is shown this once. */
  key: string;
};

/** A ticket. */
export interface CreatedTicket {
  /** Lifetime in milliseconds. */
  expires_in_ms: number;
  /** For `?ticket=`, once. */
  ticket: string;
}

/** Tools of a client. */
export interface DeclareTools {
  /**
   * Its tools: `{name, title?, description?, input_schema?, effect?, timeout_ms?}`. Names are
   * `client.<name>`, or
   * `live2d.<name>` for an avatar.
   */
  tools: {
    name: string;
  }[];
}

/** A form with one recording in it. */
export interface DecodeForm {
  /** The recording. */
  file: Blob;
}

/** A call of a recording. */
export interface DecodedCall {
  /** The arguments, if they could be read. */
  arguments?: Record<string, unknown> | null;
  /** Its name on the wire. */
  name: string;
  /** The text of arguments that could not. */
  raw?: string | null;
  /** Their id. */
  upstream_id?: string | null;
}

/** A piece of a recording, a line most often, and what came of it. */
export interface DecodedFrame {
  /** Events of a turn. */
  events: Event[];
  /** The line that it ends in, from 1. */
  line: number;
}

/** Content, other than a stream, that a recording may be. */
export interface DecodedMistake {
  /** Stable code. */
  code: string;
  /** Remedy. */
  remedy: string;
  /** Description of that content. */
  what: string;
}

/** A finding in a recording. */
export interface DecodedProblem {
  /** In bytes of the recording. */
  at: number;
  /** The bytes concerned, at most 200. */
  excerpt: string;
  /** Stable code. */
  kind: string;
  /** Line, from 1. */
  line: number;
  /** Message. */
  message: string;
}

/** Decoded content of a recording. */
export interface DecodedRecording {
  /** The wire format that it was read as. */
  api: string;
  /** Size of the recording in bytes. */
  bytes: number;
  /** The calls, in order. */
  calls: DecodedCall[];
  /** `complete`, `truncated` or `error`. */
  end: string;
  /** Error that the upstream reported. */
  error?: string | null;
  /** Finish reason of the upstream. */
  finish?: string | null;
  /** Guesses at other content that the recording may be, each with a remedy. */
  mistakes: DecodedMistake[];
  /** Frames that a viewer would have received. */
  pieces: DecodedFrame[];
  /** True if there are more than 20,000 events; the rest is left out. */
  pieces_cut: boolean;
  /** Problems in the stream, in order. */
  problems: DecodedProblem[];
  /** All text. */
  text: string;
  /** All thinking. */
  thinking: string;
  usage?: Usage | null;
}

/** A copy that can be changed. */
export interface DuplicateAgent {
  /** Name. */
  name: string;
}

/** Details of an error. */
export interface ErrorDetail {
  /** A stable word. */
  code: string;
  /** Message for people, in a sentence. */
  message: string;
  /** The field, parameter or header that is concerned. Always there, since OpenAI clients expect it. */
  param?: string | null;
  /** Remedy. */
  remedy?: string | null;
  /** The class that OpenAI clients know. */
  type: string;
  /** Further details for programs. */
  [name: string]: unknown;
}

/** `{"error": {...}}` */
export interface ErrorResponse {
  error: ErrorDetail;
}

/** One item of a turn's log. Ignore types and fields that you do not know. */
export type Event =
  | StreamStartEvent
  | StepStartEvent
  | StepEndEvent
  | BlockStartEvent
  | BlockEndEvent
  | ContentDeltaEvent
  | ThinkingEvent
  | CitationEvent
  | ToolUseEvent
  | ToolInputDeltaEvent
  | ToolInputResetEvent
  | ToolInputEvent
  | ApprovalRequestEvent
  | ApprovalResolvedEvent
  | ToolRedefinedEvent
  | ToolStartEvent
  | ToolProgressEvent
  | ToolResultEvent
  | AudioDeltaEvent
  | UserMessageEvent
  | WaitingEvent
  | ProblemEvent
  | SessionStatsEvent
  | ErrorEvent
  | TurnResumedEvent
  | BlockSupersededEvent
  | StreamEndEvent;

/** A hypothetical call. */
export interface ExampleCall {
  /** Arguments of the call. */
  arguments?: Record<string, unknown>;
  /** `group.method`. */
  tool: string;
}

/** A group of fields. */
export interface FieldGroupInfo {
  /** Fields of the group. */
  fields: AgentField[];
  /** Text that applies to all fields of the group. */
  help?: string;
  /** Label for people. */
  label: string;
  /** Stable code. */
  name: string;
}

/** A file. */
export interface FileInfo {
  /** Size in bytes. */
  bytes: number;
  /** Milliseconds since 1970. */
  created_at: number;
  /** BLAKE3 of its content, in hex. */
  hash: string;
  /** Its id: `{"type": "file", "file_id": …}` in the input of a turn. */
  id: string;
  /** Media type, detected from the content. */
  media_type: string;
  /** File name as uploaded. */
  name: string;
}

/** Where a conversation is to go on in another way, as a conversation of its own. */
export interface ForkConversation {
  /** Only up to this event of it; absent = all of it. */
  seq?: number | null;
  /** Absent = that of the conversation. */
  title?: string | null;
  /** The last turn that is taken along. */
  turn_id: string;
}

/** Report of a page about its own drawing. */
export interface FrameReport {
  /** Frames that came late. */
  jank_frames: number;
  /** Over how long, in milliseconds. */
  window_ms: number;
}

/** Health of the server. */
export interface HealthStatus {
  /** `ok`, `draining`, `no_room` (turns that run can finish) or `store_unavailable`. */
  status: string;
  /** Why it takes no turns. */
  why?: string | null;
}

/** Part of the user's input. */
export type InputPart =
  | {
      /** The text. */
      text: string;
      type: "text";
    }
  | {
      /** Id from `POST /v1/files`. */
      file_id: string;
      type: "image";
    }
  | {
      /** Id from `POST /v1/files`. */
      file_id: string;
      type: "file";
    };

/** A key without its secret. */
export interface KeyInfo {
  /** Milliseconds since 1970, as all times here. */
  created_at: number;
  /** From then on it is worth nothing. */
  expires_at?: number | null;
  /** The part of the key that is no secret. */
  id: string;
  /** To the minute. */
  last_used_at?: number | null;
  /** Name that the owner gave it. */
  name: string;
  /** Since then it is worth nothing. */
  revoked_at?: number | null;
  /** Scopes: `chat`, `tools`, `admin`. */
  scopes: string[];
  /** Whose it is. */
  user: string;
}

/** Keys. */
export interface KeyList {
  /** Newest first. */
  data: KeyInfo[];
}

/** An upstream that is known by name. */
export interface KnownUpstream {
  /** Base URL. */
  address: string;
  /** True if it responds; only for upstreams on this machine. */
  answers?: boolean | null;
  /** True if turns can use it now. */
  connected: boolean;
  /** Dialect of its API. */
  dialect: string;
  /** `present`, `missing`, or `not_needed`. */
  key: string;
  /** Where a key that is present comes from: `environment`, `stored` or `program`. */
  key_from?: string | null;
  /** Where a person gets a key. */
  key_url?: string | null;
  /** The environment variable that may hold it. */
  key_variable?: string | null;
  /** The part before the `/` of `upstream/model`. */
  name: string;
  /** Remark for people. */
  note: string;
  /** Display name. */
  title: string;
}

/** Receipt for an answered link. */
export interface LinkAck {
  /** `resolved`: it is in the log. */
  status: string;
}

/** A call that needs approval. */
export interface LinkedQuestion {
  /** Complete arguments as JSON text, with invisible characters spelled out. */
  arguments: string;
  /** In words, with nothing in them that cannot be seen. */
  question: string;
}

/** Questions behind a link. */
export interface LinkedQuestions {
  /** One for each call. */
  questions: LinkedQuestion[];
}

/** Page of a list. */
export interface AgentInfoPage {
  /** Newest first, unless the list says otherwise. */
  items: {
    /** Reason why it is unusable. */
    fault?: string | null;
    /** True for the default agent. */
    is_default: boolean;
    /** Tool-calling mode: `auto`, `native` or `text`. */
    mode: string;
    /** Its first model, as `upstream/model`. */
    model?: string | null;
    /** Name. */
    name: string;
    /** `file` if it is part of the configuration, `stored` if it was created over the API. */
    origin: string;
    /** True if it cannot be changed over the API; duplicate it instead. */
    read_only: boolean;
    /** True if the agent has tools. */
    tools_enabled: boolean;
    /** Time of the last change in milliseconds since 1970. Absent for agents of the configuration. */
    updated_at?: number | null;
    /** Version, which grows with each change. Absent for agents of the configuration. */
    version?: number | null;
    /** Likely mistakes: rules that match no tool, each with the nearest name. Absent if there are none. */
    warnings?: string[];
  }[];
  /** `cursor` of the next page; absent on the last page. */
  next?: string | null;
  /**
   * True if the search ran out of time before `next`, or if new text is not indexed yet: request `next`, or
   * repeat the
   * request. `items` may be empty although there are more.
   */
  partial?: boolean;
}

/** Page of a list. */
export interface CallInfoPage {
  /** Newest first, unless the list says otherwise. */
  items: {
    /** Arguments as JSON, or the raw text if it is not JSON; cut if it is long. */
    arguments: string;
    /** The same for people: nothing in it is invisible, and JSON reads as the same value. */
    arguments_text: string;
    /** Id of the conversation. */
    conversation_id?: string | null;
    /** Run time in milliseconds. */
    duration_ms?: number | null;
    /** Effect of the tool. */
    effect: string;
    /** Error of a failed call. */
    error?: string | null;
    /** Output in short. */
    output_summary?: string | null;
    /** Source of the tool. */
    source: string;
    /** Start time, or time of announcement if it never ran, in milliseconds since 1970. */
    started_at: number;
    /** Status: that of `tool_result`, or the current activity. */
    status: string;
    /** Number of the step, from 1. */
    step: number;
    /** Id. */
    tool_id: string;
    /** Name of the tool. */
    tool_name: string;
    /** Id of the turn. */
    turn_id: string;
  }[];
  /** `cursor` of the next page; absent on the last page. */
  next?: string | null;
  /**
   * True if the search ran out of time before `next`, or if new text is not indexed yet: request `next`, or
   * repeat the
   * request. `items` may be empty although there are more.
   */
  partial?: boolean;
}

/** Page of a list. */
export interface ConversationInfoPage {
  /** Newest first, unless the list says otherwise. */
  items: {
    /** Milliseconds since 1970. */
    created_at: number;
    /** Id. */
    id: string;
    /** Turn that a new one continues by default. */
    leaf_id?: string | null;
    /** The turn that runs in it now. */
    running_turn_id?: string | null;
    /** Given, or the first words of the first input. */
    title: string;
    /** `given`, or `input` = the first words of the first input. */
    title_by: string;
    /** Number of turns, all branches counted. */
    turns: number;
    /** When something last happened in it, in milliseconds since 1970. */
    updated_at: number;
  }[];
  /** `cursor` of the next page; absent on the last page. */
  next?: string | null;
  /**
   * True if the search ran out of time before `next`, or if new text is not indexed yet: request `next`, or
   * repeat the
   * request. `items` may be empty although there are more.
   */
  partial?: boolean;
}

/** Page of a list. */
export interface FileInfoPage {
  /** Newest first, unless the list says otherwise. */
  items: {
    /** Size in bytes. */
    bytes: number;
    /** Milliseconds since 1970. */
    created_at: number;
    /** BLAKE3 of its content, in hex. */
    hash: string;
    /** Its id: `{"type": "file", "file_id": …}` in the input of a turn. */
    id: string;
    /** Media type, detected from the content. */
    media_type: string;
    /** File name as uploaded. */
    name: string;
  }[];
  /** `cursor` of the next page; absent on the last page. */
  next?: string | null;
  /**
   * True if the search ran out of time before `next`, or if new text is not indexed yet: request `next`, or
   * repeat the
   * request. `items` may be empty although there are more.
   */
  partial?: boolean;
}

/** Page of a list. */
export interface KnownUpstreamPage {
  /** Newest first, unless the list says otherwise. */
  items: {
    /** Base URL. */
    address: string;
    /** True if it responds; only for upstreams on this machine. */
    answers?: boolean | null;
    /** True if turns can use it now. */
    connected: boolean;
    /** Dialect of its API. */
    dialect: string;
    /** `present`, `missing`, or `not_needed`. */
    key: string;
    /** Where a key that is present comes from: `environment`, `stored` or `program`. */
    key_from?: string | null;
    /** Where a person gets a key. */
    key_url?: string | null;
    /** The environment variable that may hold it. */
    key_variable?: string | null;
    /** The part before the `/` of `upstream/model`. */
    name: string;
    /** Remark for people. */
    note: string;
    /** Display name. */
    title: string;
  }[];
  /** `cursor` of the next page; absent on the last page. */
  next?: string | null;
  /**
   * True if the search ran out of time before `next`, or if new text is not indexed yet: request `next`, or
   * repeat the
   * request. `items` may be empty although there are more.
   */
  partial?: boolean;
}

/** Page of a list. */
export interface OpenTurnInfoPage {
  /** Newest first, unless the list says otherwise. */
  items: {
    /** Name of the agent. */
    agent: string;
    /** The conversation that it belongs to; absent = none. */
    conversation_id?: string | null;
    /** `upstream/model` that it began with. */
    model?: string | null;
    /** Since when it is parked, in milliseconds since 1970. */
    parked_at?: number | null;
    /** Milliseconds since 1970. */
    started_at: number;
    /** Id of the turn: `GET /v1/turns/{turn_id}` shows it, `POST …/cancel` stops it. */
    turn_id: string;
    waits_for?: WaitsFor | null;
  }[];
  /** `cursor` of the next page; absent on the last page. */
  next?: string | null;
  /**
   * True if the search ran out of time before `next`, or if new text is not indexed yet: request `next`, or
   * repeat the
   * request. `items` may be empty although there are more.
   */
  partial?: boolean;
}

/** Page of a list. */
export interface PromptPreviewPage {
  /** Newest first, unless the list says otherwise. */
  items: {
    /** Name of the agent. */
    agent: string;
    /** Tools that are not offered, with reasons. */
    left_out: OmittedTool[];
    /** Tool-calling mode. */
    mode: string;
    /** System prompt, including the tools in text mode. */
    prompt: string;
    /** Text protocol; absent if calls are native. */
    protocol?: string | null;
    /** Cost in tokens. */
    tokens: PromptTokensInfo;
    /** Names of the offered tools. */
    tools: string[];
    /** Text that replaces `{{ tools }}`; empty if calls are native. */
    tools_text: string;
    /** `tools("…")` in the prompt that match nothing. */
    unmatched: string[];
  }[];
  /** `cursor` of the next page; absent on the last page. */
  next?: string | null;
  /**
   * True if the search ran out of time before `next`, or if new text is not indexed yet: request `next`, or
   * repeat the
   * request. `items` may be empty although there are more.
   */
  partial?: boolean;
}

/** Page of a list. */
export interface RememberedApprovalPage {
  /** Newest first, unless the list says otherwise. */
  items: {
    /**
     * The stored form: `decision`, `scope`, `tool`, `fingerprint`, `arguments_hash`, `arguments`, `reason`,
     * `question`.
     */
    answer: Record<string, unknown>;
    /** When it was given, in milliseconds since 1970. */
    at: number;
    /** Holds in this conversation only; absent = always. */
    conversation_id?: string | null;
    /** By which it is taken back. Never used again. */
    number: number;
    rule?: RememberedRule | null;
  }[];
  /** `cursor` of the next page; absent on the last page. */
  next?: string | null;
  /**
   * True if the search ran out of time before `next`, or if new text is not indexed yet: request `next`, or
   * repeat the
   * request. `items` may be empty although there are more.
   */
  partial?: boolean;
}

/** Page of a list. */
export interface SearchResultPage {
  /** Newest first, unless the list says otherwise. */
  items: {
    /** Milliseconds since 1970. */
    at: number;
    /** Id of the conversation. */
    conversation_id: string;
    /** `title`, `input` or `answer`. */
    part: string;
    /** Text around the match. */
    snippet: string;
    /** Its title. */
    title: string;
    /** In which turn; absent = in the title. */
    turn_id?: string | null;
  }[];
  /** `cursor` of the next page; absent on the last page. */
  next?: string | null;
  /**
   * True if the search ran out of time before `next`, or if new text is not indexed yet: request `next`, or
   * repeat the
   * request. `items` may be empty although there are more.
   */
  partial?: boolean;
}

/** Page of a list. */
export interface ToolInfoPage {
  /** Newest first, unless the list says otherwise. */
  items: {
    /** True if it asks for approval where no rule decides otherwise. */
    asks: boolean;
    /** True if models may call it. */
    callable: boolean;
    /** Description for the model. */
    description: string;
    /** Effect: `pure`, `read`, `cosmetic`, `idempotent`, `write` or `external`. */
    effect: string;
    /** `group.method`. */
    name: string;
    /** True if the agent is offered it. */
    offered: boolean;
    /** JSON Schema of its arguments. */
    parameters: Record<string, unknown>;
    /** `here`, or `client` = in a connected page or app. */
    runs_on: string;
    /** Source: `builtin`, `mcp:files`, ... */
    source: string;
    /** Time limit in milliseconds. */
    timeout_ms: number;
    /** Title for people. */
    title: string;
    /** Reason why it is not offered. */
    why_not?: string | null;
    /** Name in model requests. */
    wire_name: string;
  }[];
  /** `cursor` of the next page; absent on the last page. */
  next?: string | null;
  /**
   * True if the search ran out of time before `next`, or if new text is not indexed yet: request `next`, or
   * repeat the
   * request. `items` may be empty although there are more.
   */
  partial?: boolean;
}

/** Page of a list. */
export interface UpstreamInfoPage {
  /** Newest first, unless the list says otherwise. */
  items: {
    /** Base URL. Only for keys with the scope `admin`. */
    address?: string | null;
    /** Dialect of its API. */
    dialect: string;
    /**
     * True if it was connected while the server ran and can be removed here. Only for keys with the scope
     * `admin`.
     */
    is_stored?: boolean | null;
    /** `present`, `missing`, or `not_needed`. */
    key: string;
    /**
     * Where a key that is present comes from: `environment`, which comes first, `stored` (when it was
     * connected), or `program`.
     */
    key_from?: string | null;
    /** Environment variable for the key. Only for keys with the scope `admin`. */
    key_variable?: string | null;
    /** Known properties of these models: context size, output size and modalities. */
    model_facts: Record<string, unknown>;
    /** Models that agents of yours use there. */
    models: string[];
    /** The part before the `/` of `upstream/model`. */
    name: string;
  }[];
  /** `cursor` of the next page; absent on the last page. */
  next?: string | null;
  /**
   * True if the search ran out of time before `next`, or if new text is not indexed yet: request `next`, or
   * repeat the
   * request. `items` may be empty although there are more.
   */
  partial?: boolean;
}

/** The one message of a turn: the fold of its events. */
export interface Message {
  /** The last event that is in it. */
  seq: number;
  turn_id: string;
  conversation_id?: string;
  message_id: string;
  agent: string;
  mode: string;
  input: UserPart[];
  /** milliseconds since 1970 */
  started_at: number;
  /** milliseconds since 1970 */
  ended_at?: number;
  /** Absent while it is running. */
  status?: "completed" | "length" | "limit" | "error" | "cancelled" | "interrupted";
  blocks: Block[];
  step: number;
  model: string;
  usage: Usage;
  waiting?: {
    reason: string;
    until?: number;
  };
  problems: {
    code: string;
    excerpt: string;
    remedy?: string;
    tool_id?: string;
  }[];
  stats?: {
    /** Model calls. */
    steps?: number;
    /** Tool calls. */
    calls?: number;
    usage?: Usage;
    /** From the first event to this one, in milliseconds. */
    wall_ms?: number;
    /** To the first content, in milliseconds. */
    first_content_ms?: number;
    /** Tool time that overlapped with the model's stream, in milliseconds. */
    saved_by_eager_ms?: number;
    segments?: WaterfallSegment[];
  };
  error?: Fault;
  stopped?: boolean;
}

/** Metrics of turns and calls in a time span. */
export interface MetricsInfo {
  /** Calls that wait for a person now. */
  approvals_waiting: number;
  /** Length of a bucket in milliseconds; the last one may be shorter. */
  bucket_ms: number;
  /** The time in parts, without gaps. */
  buckets: BucketMetrics[];
  /** All calls. */
  calls: CallsMetrics;
  /** Calls by status, the most frequent first. */
  calls_by_status: CountInfo[];
  /** True if the time span has more calls; the figures cover the newest of them. */
  calls_cut: boolean;
  /** When the time begins, in milliseconds since 1970. */
  from: number;
  /** The newest so many turns, and so many calls, are looked at. */
  samples_max: number;
  /** By tool, the most called first; at most 100. */
  tools: ToolMetrics[];
  /** Tools beyond those. */
  tools_left_out: number;
  /** All turns. */
  turns: TurnsMetrics;
  /** Turns by status, the most frequent first. */
  turns_by_status: CountInfo[];
  /** True if the time span has more turns; the figures cover the newest of them. */
  turns_cut: boolean;
  /** When it ends. */
  until: number;
}

/** One model, in OpenAI's form. */
export type ModelEntry = ModelProperties & {
  /** Not known: 0. The field is required. */
  created: number;
  /** To be sent as `model`. */
  id: string;
  /** `model` */
  object: string;
  /** `throughline` for agents, else the upstream. */
  owned_by: string;
};

/** All models. */
export interface ModelList {
  /**
   * Agents by name, as `agent:rendering` too where the server lists these, then models as `upstream/model`.
   */
  data: ModelEntry[];
  /** `list` */
  object: string;
}

/** Known properties of a model. Absent if unknown. */
export interface ModelProperties {
  /** It hears sound. */
  audio?: boolean | null;
  /** Tokens that it reads. */
  context_length?: number | null;
  /** Most tokens of one answer. */
  max_output_tokens?: number | null;
  /** It calls tools natively. */
  tools?: boolean | null;
  /** It sees pictures. */
  vision?: boolean | null;
}

/** A tool that is not offered. */
export interface OmittedTool {
  /** The tool. */
  name: string;
  /** The first reason that applies. */
  why: string;
}

/** Behaviour of a turn when its last viewer disconnects. */
export type OnDisconnect = "continue" | "cancel";

/** A turn that has not ended. */
export interface OpenTurnInfo {
  /** Name of the agent. */
  agent: string;
  /** The conversation that it belongs to; absent = none. */
  conversation_id?: string | null;
  /** `upstream/model` that it began with. */
  model?: string | null;
  /** Since when it is parked, in milliseconds since 1970. */
  parked_at?: number | null;
  /** Milliseconds since 1970. */
  started_at: number;
  /** Id of the turn: `GET /v1/turns/{turn_id}` shows it, `POST …/cancel` stops it. */
  turn_id: string;
  waits_for?: WaitsFor | null;
}

/** Turn that another turn continues. */
export interface ParentTurn {
  /** Only up to this event of it; absent = all of it. */
  seq?: number | null;
  /** A turn of the same conversation. */
  turn_id: string;
}

/** A reply to parse. */
export interface ParseText {
  /** Agent whose rules apply; absent for the server's default agent. */
  agent?: string | null;
  /** `vcp` or `xml`; absent to try all protocols. */
  protocol?: "vcp" | "xml" | null;
  /** The reply, at most 1 MiB. */
  text: string;
}

/** Parsed reply. */
export interface ParsedReply {
  /** Calls and refused blocks, in the order of the text. */
  requests: ParsedRequest[];
  /** Text without markup, as a reader sees it. */
  text: string;
  /** Warnings, in the order of the text. */
  warnings: ParsedWarning[];
}

/** A call in a text, or a block that was refused. */
export interface ParsedRequest {
  /** The arguments, if they could be read. */
  arguments?: Record<string, unknown> | null;
  /** The same as JSON text for people: nothing in it is invisible, and it reads as the same value. */
  arguments_text?: string | null;
  /** Column in characters, from 1. */
  column: number;
  /** First byte after it. */
  end: number;
  /** The text protocol, or the format of a leaked call. */
  format: string;
  /** True for another model's markup that leaked into the text. */
  leaked: boolean;
  /** Line, from 1. */
  line: number;
  /** Name as written. */
  name: string;
  /** `runs`, `asks`, `denied` or `not_started`. */
  outlook: string;
  /** The rule that decides. */
  rule?: string | null;
  /** First byte of the block. */
  start: number;
  /** The tool that it calls. */
  tool?: string | null;
  /** Reason why it would not run. */
  why?: string | null;
}

/** A finding in a text. */
export interface ParsedWarning {
  /** Byte offset in the text. */
  at: number;
  /** Column in characters, from 1. */
  column: number;
  /** Stable code. */
  kind: string;
  /** Line, from 1. */
  line: number;
  /** Message. */
  message: string;
}

/** Earlier message of a turn that stands alone. */
export interface PastMessage {
  content: string;
  role: PastMessageRole;
}

/** Author of a past message. */
export type PastMessageRole = "user" | "assistant";

/** Middle and upper end of some values. */
export interface Percentiles {
  /** Number of values. */
  count: number;
  /** Half of them are at most this: the nearest rank, so one of the values. */
  p50?: number | null;
  /** 95 of 100 are at most this. */
  p95?: number | null;
}

/** Settings that are not saved. */
export interface PreviewAgent {
  call?: ExampleCall | null;
  /** Settings of the agent to preview. */
  settings: AgentSettings;
}

/** Prompt of an agent in one mode. */
export interface PromptPreview {
  /** Name of the agent. */
  agent: string;
  /** Tools that are not offered, with reasons. */
  left_out: OmittedTool[];
  /** Tool-calling mode. */
  mode: string;
  /** System prompt, including the tools in text mode. */
  prompt: string;
  /** Text protocol; absent if calls are native. */
  protocol?: string | null;
  /** Cost in tokens. */
  tokens: PromptTokensInfo;
  /** Names of the offered tools. */
  tools: string[];
  /** Text that replaces `{{ tools }}`; empty if calls are native. */
  tools_text: string;
  /** `tools("…")` in the prompt that match nothing. */
  unmatched: string[];
}

/** Tokens of everything that is sent before the conversation. */
export interface PromptTokensInfo {
  /** `exact` or `estimated`. */
  counting: string;
  /** Tokens of the prompt. */
  prompt: number;
  /** Tokens of the tools by source. */
  sources: SourceTokensInfo[];
  /** Total. */
  total: number;
}

/** A link from a question in a chat. */
export interface QuestionLink {
  /** Code after `#` in the link. */
  link: string;
}

/** A message that waits. */
export interface QueuedMessageInfo {
  /** By which it can be taken back. */
  id: string;
  /** Its parts. */
  input: Record<string, unknown>[];
  /** Point at which the message is delivered. */
  when: string;
}

/** Messages that wait, oldest first. */
export interface QueuedMessageList {
  /** Those. */
  messages: QueuedMessageInfo[];
}

/** Arguments for which an answer is remembered. */
export type RememberArguments = ArgumentsKeyword | Record<string, unknown>;

/** Scope and arguments of a remembered answer. */
export interface RememberChoice {
  arguments?: RememberArguments | null;
  /** Older name of `arguments`: `exact`, `any`, or `{"arguments": {…}}` with conditions. */
  constraints?: "exact" | "any" | null;
  /** Scope. */
  scope: RememberScope;
}

/** Scope and arguments of a remembered answer. It applies only to the tool's current definition. */
export type RememberFor = RememberScope | RememberChoice;

/** Scope of a remembered answer. */
export type RememberScope = "call" | "turn" | "conversation" | "always";

/** An answer that is remembered. */
export interface RememberedApproval {
  /**
   * The stored form: `decision`, `scope`, `tool`, `fingerprint`, `arguments_hash`, `arguments`, `reason`,
   * `question`.
   */
  answer: Record<string, unknown>;
  /** When it was given, in milliseconds since 1970. */
  at: number;
  /** Holds in this conversation only; absent = always. */
  conversation_id?: string | null;
  /** By which it is taken back. Never used again. */
  number: number;
  rule?: RememberedRule | null;
}

/** The decision of a remembered answer and the calls that it is about. */
export interface RememberedRule {
  /** `approve` or `deny`. */
  decision: string;
  /**
   * `these`: the same arguments as then and no others. `any`. Otherwise tests by name or JSON pointer, all of
   * which the arguments have to pass.
   */
  for_arguments: Record<string, unknown>;
  /** The question that was answered; absent in approvals from earlier releases. */
  question?: string | null;
  /** Why it was denied. */
  reason?: string | null;
  /** `conversation` or `always`. */
  scope: string;
  /** Calls of this tool, as it was defined then: if it is defined otherwise, it asks again. */
  tool: string;
  /** The turn that asked it. */
  turn_id?: string | null;
}

/** New settings of an agent. */
export interface ReplaceAgent {
  /** New settings, replacing all of the old ones. */
  settings: AgentSettings;
  /** Expected current version; a different one is a conflict. Absent to replace any version. */
  version?: number | null;
}

/** Answer to a question. */
export interface ResolveApproval {
  /** Replacement for all arguments. For a running tool's question, the values of its form. */
  arguments?: Record<string, unknown> | null;
  /** Hash of the arguments from the question; the answer is refused if they have changed. */
  arguments_hash?: string | null;
  /**
   * `approve` or `deny`. For a running tool's own question, `approve` submits the values in `arguments` and
   * `deny` declines.
   */
  decision: "approve" | "deny";
  /** Reason; that of a denial is sent to the model. */
  reason?: string | null;
  remember?: RememberFor | null;
}

/** Scope of a key. */
export type ScopeName = "chat" | "tools" | "admin";

/** A place where a text was found. */
export interface SearchResult {
  /** Milliseconds since 1970. */
  at: number;
  /** Id of the conversation. */
  conversation_id: string;
  /** `title`, `input` or `answer`. */
  part: string;
  /** Text around the match. */
  snippet: string;
  /** Its title. */
  title: string;
  /** In which turn; absent = in the title. */
  turn_id?: string | null;
}

/** Message to a running turn. */
export interface SendMessage {
  /** An id of one's own, unique in the turn: saying it twice is saying it once. */
  id?: string | null;
  /** Content of the message. */
  input: InputPart[];
  /** `next_step` (default): the model answers it in this turn. `after_turn`: the next turn begins with it. */
  when?: "next_step" | "after_turn";
}

/** A message was taken. */
export interface SentMessage {
  /** By which it can be taken back, and found in the turn's events. */
  id: string;
}

/** Code after `#sign-in=` in the link that `throughline serve` prints. */
export interface SignInRequest {
  /** The code from the link. */
  ticket: string;
}

/** A fault of a source. Its other tools keep working. */
export interface SourceFaultInfo {
  message: string;
  remedy?: string | null;
  /** Tool that has the fault; absent if it is the whole source. */
  tool?: string | null;
}

/** Cost in tokens of one source's tools. */
export interface SourceTokensInfo {
  /** The source. */
  source: string;
  /** Tokens of their definitions. */
  tokens: number;
  /** Number of its tools that are offered. */
  tools: number;
}

/** One event as it comes in a stream. */
export interface SseFrame {
  /** An `Event` as JSON, a `chat.completion.chunk`, or `[DONE]`. */
  data: string;
  /** Type of the event; absent in chat completions. */
  event?: string | null;
  /** Its number in the turn, for `Last-Event-ID`; absent where there is nothing to come back to. */
  id?: string | null;
}

/** Request to start a turn. */
export interface StartTurn {
  /** Name of the agent that answers; absent for the server's default agent. */
  agent?: string | null;
  /** Conversation to continue. Absent, and without `messages`, for a new one. */
  conversation_id?: string | null;
  /** Input of the user. */
  input: InputPart[];
  /** Earlier messages of a turn that stands alone, outside any conversation. */
  messages?: PastMessage[] | null;
  /** Tool-calling mode: `native`, `text` or `auto`. Absent for the agent's own. */
  mode?: "auto" | "native" | "text" | null;
  /** Model as `upstream/model`, instead of the agent's. */
  model?: string | null;
  /** Behaviour when the last viewer disconnects. Default `continue`. */
  on_disconnect?: OnDisconnect;
  /**
   * Turn to continue from. Absent for the branch that was continued last; `null` to start a new branch at the
   * beginning of the
   * conversation.
   */
  parent_id?: string | null;
  /** Event of the parent to continue from, instead of its end. */
  parent_seq?: number | null;
}

/** An event of a call's timeline. */
export interface TimelineEntry {
  /** Time since the previous entry, in milliseconds. */
  after_ms: number;
  /** Milliseconds since 1970. */
  at: number;
  /** Number of consecutive events that the entry stands for. */
  count: number;
  /** The event without what every event has; of several in a row, the last. */
  detail: Record<string, unknown>;
  /** The event's type. */
  event: string;
  /** Number of the event. */
  seq: number;
}

/** A tool call with its outcome: one call, one card. */
export interface ToolCall {
  tool_id?: string;
  step?: number;
  tool_name?: string;
  title?: string;
  source?: string;
  effect?: "pure" | "read" | "cosmetic" | "idempotent" | "write" | "external";
  status?:
    | "preparing"
    | "queued"
    | "awaiting_approval"
    | "running"
    | "success"
    | "error"
    | "denied"
    | "cancelled"
    | "timed_out"
    | "not_started"
    | "unknown";
  input_summary?: string;
  /** Argument text so far. */
  input_text?: string;
  /** Final arguments. */
  arguments?: unknown;
  raw?: string;
  /** The arguments that a person put in place of those. */
  ran_with?: unknown;
  problem?: string;
  seal?: "explicit" | "terminal" | "successor" | "balanced";
  /** The open question. */
  approval?: {
    approval_id: string;
    question: string;
    rule: string;
    /** milliseconds since 1970 */
    expires_at?: number;
    /**
     * The arguments that would run, as JSON text for people: nothing in it is invisible, and it reads as the
     * same value.
     */
    arguments_text?: string;
    arguments_hash?: string;
    fingerprint?: string;
    kind?: "elicitation";
    schema?: unknown;
    url?: string;
  };
  rule?: string;
  early?: boolean;
  attempts?: number;
  progress?: {
    progress?: number;
    total?: number;
    message?: string;
    output_delta?: string;
  };
  output?: string;
  output_value?: unknown;
  output_media?: Media[];
  output_size?: number;
  output_summary?: string;
  error?: ToolError;
  /** milliseconds since 1970 */
  started_at?: number;
  duration_ms?: number;
  applied?: boolean;
  seen_by_model?: boolean;
  /** The client that is asked to run it. */
  client_id?: string;
}

/** Result of a manual call. */
export interface ToolCallResult {
  /** Run time in milliseconds. */
  duration_ms: number;
  /** Output, cut to its head and tail if it is long. */
  output?: string | null;
  /** Pictures and sounds, as `{media_type, data}` with base64. */
  output_media?: Record<string, unknown>[];
  /** Bytes of the whole output. */
  output_size?: number | null;
  /** The structured form. */
  output_value?: Record<string, unknown>;
  /** Rule that allowed the call or required `confirm`. */
  rule: string;
  /** Milliseconds since 1970. */
  started_at: number;
  /** `success`, `error`, `timed_out`, `cancelled`, `not_started` or `unknown`. */
  status: string;
  /** Text that a model would receive. */
  told_to_model: string;
}

/** Use of tools. */
export interface ToolCallSettings {
  /** Toggle of tools that are not listed. Default true. */
  default_tool_enabled?: boolean;
  /** True if the agent has tools. Default false. */
  enabled?: boolean;
  /** Maximum number of steps with calls in a turn. Default 5. */
  max_iterations?: number;
  /** `auto`, or `manual`: each call waits for a person. */
  mode?: "auto" | "manual" | null;
  /** Run the calls of a step in parallel. */
  parallel_execution?: boolean;
  /** Protocol of text mode: `vcp` or `xml`. */
  protocol?: "vcp" | "xml";
  /** Ask before every call. */
  require_confirmation?: boolean;
  /** Role of tool results in text mode: `user` or `tool`. */
  results?: "user" | "tool";
  /** Start of tools without side effects: `eager` or `after_stream`. */
  start?: "eager" | "after_stream";
  /** Default time limit of tools, in milliseconds. */
  timeout_ms?: number;
  /** Toggles by group or tool; the more specific name wins. */
  tool_toggles?: Record<string, boolean>;
}

/** They are declared. */
export interface ToolDeclaration {
  client_id: string;
  /** Number of tools that the client has declared. */
  tools: number;
  /** Lifetime in milliseconds: declare the tools again before it ends, or they are no longer offered. */
  valid_ms: number;
}

/** A tool, as an agent is offered it. */
export interface ToolInfo {
  /** True if it asks for approval where no rule decides otherwise. */
  asks: boolean;
  /** True if models may call it. */
  callable: boolean;
  /** Description for the model. */
  description: string;
  /** Effect: `pure`, `read`, `cosmetic`, `idempotent`, `write` or `external`. */
  effect: string;
  /** `group.method`. */
  name: string;
  /** True if the agent is offered it. */
  offered: boolean;
  /** JSON Schema of its arguments. */
  parameters: Record<string, unknown>;
  /** `here`, or `client` = in a connected page or app. */
  runs_on: string;
  /** Source: `builtin`, `mcp:files`, ... */
  source: string;
  /** Time limit in milliseconds. */
  timeout_ms: number;
  /** Title for people. */
  title: string;
  /** Reason why it is not offered. */
  why_not?: string | null;
  /** Name in model requests. */
  wire_name: string;
}

/** List of tools. */
export interface ToolList {
  /** Sources by name, including those without tools. */
  sources: ToolSourceInfo[];
  /** Tools by name. */
  tools: ToolInfo[];
  /** Toggles of the agent that match no tool. */
  unknown_toggles: string[];
}

/** Metrics of the calls of one tool. */
export type ToolMetrics = CallsMetrics & {
  tool_name: string;
};

/** A source of tools. */
export interface ToolSourceInfo {
  /** Faults of the source. */
  faults: SourceFaultInfo[];
  /** `builtin`, `mcp:files`, ... */
  name: string;
  /** Number of tools that the source has. */
  tools: number;
}

/**
 * A turn in a tree. Turns with the same parent are siblings: with another input an edit, with the same a
 * regeneration.
 */
export interface TurnNode {
  /** Agent that answered. */
  agent: string;
  /** The beginning of the answer. */
  answer: string;
  /** Milliseconds since 1970. */
  created_at: number;
  /** Milliseconds since 1970; absent = it runs. */
  ended_at?: number | null;
  /** Id. */
  id: string;
  /** The beginning of the input. */
  input: string;
  /** Id of the answer. */
  message_id: string;
  /** Model that answered, as `upstream/model`. */
  model?: string | null;
  parent?: ParentTurn | null;
  /** `running`, or the status at its end. */
  status: string;
}

/** Current state of a turn. */
export interface TurnSnapshot {
  /** Number of its last event: continue with `events?after=<last_seq>`. */
  last_seq: number;
  /** The message with its blocks. */
  message: Message;
  /**
   * `running`, or the status at its end: `completed`, `length`, `limit`, `error`, `cancelled`, `interrupted`.
   */
  status: string;
  /** Tokens of all steps. */
  usage: Usage;
}

/** A started turn. */
export interface TurnStarted {
  /** Id of the conversation. */
  conversation_id?: string | null;
  /** Path of its events. */
  events_url: string;
  /** Id of the answer's message. */
  message_id: string;
  turn_id: string;
}

/** Metrics of turns. */
export interface TurnsMetrics {
  /** From the beginning of a turn to its first content, in milliseconds. */
  first_token_ms: Percentiles;
  /**
   * Tokens that models wrote per second of writing, as upstreams count them. Turns whose upstream reports no
   * tokens
   * are left out.
   */
  tokens_per_second: Percentiles;
  /** All that began in the time. */
  total: number;
}

/** Changes to a conversation. Absent fields stay as they are. */
export interface UpdateConversation {
  /** The turn that a new one continues: another branch. */
  leaf_id?: string | null;
  /** Its title; empty = the first words of the first input again. */
  title?: string | null;
}

/** Tool toggles. `null` removes a toggle. */
export interface UpdateToggles {
  /** Toggles by source (`mcp:files`), applied to every tool that it has now. */
  sources?: Record<string, boolean | null>;
  /** Toggles by tool (`files.read`) or group (`files`). */
  tools?: Record<string, boolean | null>;
}

/** A form with one file in it. */
export interface UploadForm {
  /** The file. */
  file: Blob;
}

/** A model endpoint. */
export interface UpstreamInfo {
  /** Base URL. Only for keys with the scope `admin`. */
  address?: string | null;
  /** Dialect of its API. */
  dialect: string;
  /**
   * True if it was connected while the server ran and can be removed here. Only for keys with the scope
   * `admin`.
   */
  is_stored?: boolean | null;
  /** `present`, `missing`, or `not_needed`. */
  key: string;
  /**
   * Where a key that is present comes from: `environment`, which comes first, `stored` (when it was
   * connected), or `program`.
   */
  key_from?: string | null;
  /** Environment variable for the key. Only for keys with the scope `admin`. */
  key_variable?: string | null;
  /** Known properties of these models: context size, output size and modalities. */
  model_facts: Record<string, unknown>;
  /** Models that agents of yours use there. */
  models: string[];
  /** The part before the `/` of `upstream/model`. */
  name: string;
}

/** Token counts, each present only if the upstream reported it. */
export interface Usage {
  /** Prompt tokens, those of a cache included. */
  input_tokens?: number;
  /** Generated tokens. */
  output_tokens?: number;
  /** Prompt tokens served from a cache. */
  cached_input_tokens?: number;
  /** Prompt tokens that were written to a cache, where that has a price of its own. */
  cache_written_tokens?: number;
  /** Generated tokens that were reasoning. */
  reasoning_tokens?: number;
}

/** Input that a parked turn waits for, from another request of the same requester. */
export type WaitsFor = "tool_results" | "approval";

/** Time of a turn by activity. */
export interface WaterfallInfo {
  /** Time from start to the first content, in milliseconds. */
  first_content_ms?: number | null;
  /** Tool time that overlapped with the model's stream, in milliseconds. */
  saved_by_eager_ms: number;
  /** Segments without gaps; their sum is `wall_ms`. */
  segments: WaterfallSegment[];
  /** `running`, or the status at its end. */
  status: string;
  /** Time from start to end, or to now, in milliseconds. */
  wall_ms: number;
}

/** A time segment of a turn. */
export interface WaterfallSegment {
  kind: "first_token" | "thinking" | "text" | "arguments" | "approval_wait" | "tool" | "retry" | "engine";
  /** From 1. */
  step?: number;
  tool_id?: string;
  /** milliseconds since 1970 */
  start: number;
  /** Duration in milliseconds. */
  ms: number;
}

/** A picture, a sound or a file. */
export interface Media {
  /** MIME type. */
  media_type: string;
  /** Base64, without a `data:` prefix. */
  data?: string;
  /**
   * The file that holds the content, in place of `data`, if it is too large for the log: `GET
   * /v1/files/{file_id}/content`.
   */
  file_id?: string;
  /** Size in bytes. */
  bytes?: number;
  /** Where the upstream finds it by itself, in place of `data`. */
  url?: string;
}

/** A part of what the user sent. */
export type UserPart =
  | {
      type: "text";
      text: string;
    }
  | {
      type: "image";
      media_type: string;
      /** Base64. */
      data?: string;
      /**
       * The file that holds the content, in place of `data`, if it is too large for the log: `GET
       * /v1/files/{file_id}/content`.
       */
      file_id?: string;
      /** Size in bytes. */
      bytes?: number;
      /** Where the upstream finds it by itself, in place of `data`. */
      url?: string;
    }
  | {
      type: "file";
      name: string;
      media_type: string;
      /** Base64. */
      data?: string;
      /**
       * The file that holds the content, in place of `data`, if it is too large for the log: `GET
       * /v1/files/{file_id}/content`.
       */
      file_id?: string;
      /** Size in bytes. */
      bytes?: number;
      /** Where the upstream finds it by itself, in place of `data`. */
      url?: string;
    };

/** A failure as shown to people. */
export interface Fault {
  /** A stable code. */
  code: string;
  /** Description of the failure. */
  what: string;
  /** Cause. */
  why: string;
  /** Remedy. */
  remedy: string;
  /** Trying the same again may help. */
  retryable: boolean;
  /** HTTP status of the upstream, if it answered with one. */
  status?: number;
  /** Delay before the next attempt that the upstream asked for, in milliseconds. */
  retry_after_ms?: number;
}

/** Why a call did not succeed. */
export interface ToolError {
  code:
    | "failed"
    | "denied"
    | "cancelled"
    | "cancelled_before_start"
    | "timed_out"
    | "interrupted"
    | "invalid_arguments"
    | "refused"
    | "unknown_tool"
    | "no_viewer"
    | "client_gone"
    | "stopped"
    | "limit"
    | "unknown";
  /** Message of the tool, the check or the person. */
  message?: string;
  /** Of an unknown tool: the closest names. */
  closest?: string[];
  /** Name of the limit. */
  limit?: string;
  /** The time limit, in milliseconds. */
  limit_ms?: number;
}

/** The turn begins: always the first event. */
export interface StreamStartEvent {
  type: "stream_start";
  /** Id of the turn. */
  turn_id: string;
  /** Its number, dense from 1: the `id` of the SSE frame. */
  seq: number;
  /** milliseconds since 1970 */
  timestamp: number;
  /** The model call it belongs to, from 1. */
  step?: number;
  /** Position of the block in the message, from 0. */
  block?: number;
  /** The tool call concerned. */
  tool_id?: string;
  /** Version of the format. */
  v: number;
  conversation_id?: string;
  message_id: string;
  agent: string;
  mode: "auto" | "native" | "text";
  input: UserPart[];
}

/** A model call begins; once more with the next `attempt` if it is tried again. */
export interface StepStartEvent {
  type: "step_start";
  /** Id of the turn. */
  turn_id: string;
  /** Its number, dense from 1: the `id` of the SSE frame. */
  seq: number;
  /** milliseconds since 1970 */
  timestamp: number;
  /** The model call it belongs to, from 1. */
  step?: number;
  /** Position of the block in the message, from 0. */
  block?: number;
  /** The tool call concerned. */
  tool_id?: string;
  upstream: string;
  model: string;
  /** From 1 in each step. */
  attempt: number;
  /** Number of the fallback, from 1; absent for the first choice. */
  fallback?: number;
  tools_offered: string[];
}

/** The model call is over; its tools may still run. */
export interface StepEndEvent {
  type: "step_end";
  /** Id of the turn. */
  turn_id: string;
  /** Its number, dense from 1: the `id` of the SSE frame. */
  seq: number;
  /** milliseconds since 1970 */
  timestamp: number;
  /** The model call it belongs to, from 1. */
  step?: number;
  /** Position of the block in the message, from 0. */
  block?: number;
  /** The tool call concerned. */
  tool_id?: string;
  finish?: "stop" | "length" | "tool_calls" | "content_filter" | "pause" | "error" | "other";
  /** The upstream's own word. */
  finish_raw?: string;
  usage?: Usage;
  segments?: WaterfallSegment[];
}

/** A block opens. A `tool_call` block is opened by `tool_use` instead. */
export interface BlockStartEvent {
  type: "block_start";
  /** Id of the turn. */
  turn_id: string;
  /** Its number, dense from 1: the `id` of the SSE frame. */
  seq: number;
  /** milliseconds since 1970 */
  timestamp: number;
  /** The model call it belongs to, from 1. */
  step?: number;
  /** Position of the block in the message, from 0. */
  block?: number;
  /** The tool call concerned. */
  tool_id?: string;
  /** `image`, `notice` and `error` are complete with this event. */
  kind: "text" | "thinking" | "audio" | "image" | "notice" | "error";
  /** Of a text: `refusal`. Of a notice or error: a stable word. */
  code?: string;
  /** Of a notice: a sentence. */
  text?: string;
  /** Of an image. */
  media_type?: string;
  /** Of an image: base64. */
  data?: string;
  /**
   * The file that holds the content, in place of `data`, if it is too large for the log: `GET
   * /v1/files/{file_id}/content`.
   */
  file_id?: string;
  /** Size in bytes. */
  bytes?: number;
  what?: string;
  why?: string;
  remedy?: string;
  retryable?: boolean;
  /** HTTP status of the upstream, if it answered with one. */
  status?: number;
  /** Delay before the next attempt that the upstream asked for, in milliseconds. */
  retry_after_ms?: number;
}

/** A text, thinking or audio block is complete. */
export interface BlockEndEvent {
  type: "block_end";
  /** Id of the turn. */
  turn_id: string;
  /** Its number, dense from 1: the `id` of the SSE frame. */
  seq: number;
  /** milliseconds since 1970 */
  timestamp: number;
  /** The model call it belongs to, from 1. */
  step?: number;
  /** Position of the block in the message, from 0. */
  block?: number;
  /** The tool call concerned. */
  tool_id?: string;
}

/** Visible text, appended to the block. */
export interface ContentDeltaEvent {
  type: "content_delta";
  /** Id of the turn. */
  turn_id: string;
  /** Its number, dense from 1: the `id` of the SSE frame. */
  seq: number;
  /** milliseconds since 1970 */
  timestamp: number;
  /** The model call it belongs to, from 1. */
  step?: number;
  /** Position of the block in the message, from 0. */
  block?: number;
  /** The tool call concerned. */
  tool_id?: string;
  text: string;
}

/** Reasoning, appended to the block. Empty if the model reasons without showing it. */
export interface ThinkingEvent {
  type: "thinking";
  /** Id of the turn. */
  turn_id: string;
  /** Its number, dense from 1: the `id` of the SSE frame. */
  seq: number;
  /** milliseconds since 1970 */
  timestamp: number;
  /** The model call it belongs to, from 1. */
  step?: number;
  /** Position of the block in the message, from 0. */
  block?: number;
  /** The tool call concerned. */
  tool_id?: string;
  text: string;
}

/** A source that the model cites, in the upstream's own form. */
export interface CitationEvent {
  type: "citation";
  /** Id of the turn. */
  turn_id: string;
  /** Its number, dense from 1: the `id` of the SSE frame. */
  seq: number;
  /** milliseconds since 1970 */
  timestamp: number;
  /** The model call it belongs to, from 1. */
  step?: number;
  /** Position of the block in the message, from 0. */
  block?: number;
  /** The tool call concerned. */
  tool_id?: string;
  source: unknown;
}

/** A tool call appears: opens its block. */
export interface ToolUseEvent {
  type: "tool_use";
  /** Id of the turn. */
  turn_id: string;
  /** Its number, dense from 1: the `id` of the SSE frame. */
  seq: number;
  /** milliseconds since 1970 */
  timestamp: number;
  /** The model call it belongs to, from 1. */
  step?: number;
  /** Position of the block in the message, from 0. */
  block?: number;
  /** The tool call concerned. */
  tool_id?: string;
  /** `group.method`. */
  tool_name: string;
  wire_name: string;
  title?: string;
  source?: string;
  effect: "pure" | "read" | "cosmetic" | "idempotent" | "write" | "external";
  status: "preparing";
  input_summary?: string;
  upstream_id?: string;
  slot: number;
  position: number;
  call_kind?: "function" | "custom";
  /** The call that this one replaces. */
  supersedes?: string;
}

/** Argument text, appended. */
export interface ToolInputDeltaEvent {
  type: "tool_input_delta";
  /** Id of the turn. */
  turn_id: string;
  /** Its number, dense from 1: the `id` of the SSE frame. */
  seq: number;
  /** milliseconds since 1970 */
  timestamp: number;
  /** The model call it belongs to, from 1. */
  step?: number;
  /** Position of the block in the message, from 0. */
  block?: number;
  /** The tool call concerned. */
  tool_id?: string;
  delta: string;
}

/** The upstream contradicted its arguments: the text so far is void. */
export interface ToolInputResetEvent {
  type: "tool_input_reset";
  /** Id of the turn. */
  turn_id: string;
  /** Its number, dense from 1: the `id` of the SSE frame. */
  seq: number;
  /** milliseconds since 1970 */
  timestamp: number;
  /** The model call it belongs to, from 1. */
  step?: number;
  /** Position of the block in the message, from 0. */
  block?: number;
  /** The tool call concerned. */
  tool_id?: string;
}

/** The arguments are final, or will never be. */
export interface ToolInputEvent {
  type: "tool_input";
  /** Id of the turn. */
  turn_id: string;
  /** Its number, dense from 1: the `id` of the SSE frame. */
  seq: number;
  /** milliseconds since 1970 */
  timestamp: number;
  /** The model call it belongs to, from 1. */
  step?: number;
  /** Position of the block in the message, from 0. */
  block?: number;
  /** The tool call concerned. */
  tool_id?: string;
  /** As a value. */
  arguments?: unknown;
  /** As text, where it is not the compact form of `arguments`. */
  text?: string;
  repairs?: (
    | "empty_is_object"
    | "leading_placeholder"
    | "cumulative"
    | "exact_repetition"
    | "double_encoded"
    | "lone_surrogate"
  )[];
  seal?: "explicit" | "terminal" | "successor" | "balanced";
  /** The text of a call that cannot be read. */
  raw?: string;
  /** Why not. */
  problem?: string;
  /** Why not, as a value. */
  broken?: unknown;
  input_summary?: string;
}

/** A person is asked. */
export interface ApprovalRequestEvent {
  type: "approval_request";
  /** Id of the turn. */
  turn_id: string;
  /** Its number, dense from 1: the `id` of the SSE frame. */
  seq: number;
  /** milliseconds since 1970 */
  timestamp: number;
  /** The model call it belongs to, from 1. */
  step?: number;
  /** Position of the block in the message, from 0. */
  block?: number;
  /** The tool call concerned. */
  tool_id?: string;
  /** The key of the answer. */
  approval_id: string;
  /** A running tool asks; absent = may the call run? */
  kind?: "elicitation";
  question: string;
  rule: string;
  /** When it counts as denied; absent = never. milliseconds since 1970 */
  expires_at?: number;
  /**
   * The arguments that would run, as JSON text for people: nothing in it is invisible, and it reads as the
   * same value.
   */
  arguments_text?: string;
  arguments_hash?: string;
  fingerprint?: string;
  /** JSON Schema of values to be filled in. */
  schema?: unknown;
  /** The address to be opened instead. */
  url?: string;
}

/** The question is answered. */
export interface ApprovalResolvedEvent {
  type: "approval_resolved";
  /** Id of the turn. */
  turn_id: string;
  /** Its number, dense from 1: the `id` of the SSE frame. */
  seq: number;
  /** milliseconds since 1970 */
  timestamp: number;
  /** The model call it belongs to, from 1. */
  step?: number;
  /** Position of the block in the message, from 0. */
  block?: number;
  /** The tool call concerned. */
  tool_id?: string;
  approval_id: string;
  decision: "approve" | "deny";
  by: string;
  reason?: string;
  /** The tool runs with these instead. */
  arguments?: unknown;
  /** `[{path, from, to}]`, by JSON pointer. */
  arguments_diff?: unknown;
  remember?: "call" | "turn" | "conversation" | "always";
  /** Remembered approval that the answer created. */
  remembered?: unknown;
  answer?: "accept" | "decline" | "cancel";
  /** The values that were filled in. */
  content?: unknown;
}

/** A tool is no longer defined as it was offered. */
export interface ToolRedefinedEvent {
  type: "tool_redefined";
  /** Id of the turn. */
  turn_id: string;
  /** Its number, dense from 1: the `id` of the SSE frame. */
  seq: number;
  /** milliseconds since 1970 */
  timestamp: number;
  /** The model call it belongs to, from 1. */
  step?: number;
  /** Position of the block in the message, from 0. */
  block?: number;
  /** The tool call concerned. */
  tool_id?: string;
  tool_name: string;
  fingerprint: string;
  attempt?: number;
}

/** The intent: in the log before the tool runs. */
export interface ToolStartEvent {
  type: "tool_start";
  /** Id of the turn. */
  turn_id: string;
  /** Its number, dense from 1: the `id` of the SSE frame. */
  seq: number;
  /** milliseconds since 1970 */
  timestamp: number;
  /** The model call it belongs to, from 1. */
  step?: number;
  /** Position of the block in the message, from 0. */
  block?: number;
  /** The tool call concerned. */
  tool_id?: string;
  /** Before the step's commit. */
  early: boolean;
  /** From 1. */
  attempt: number;
  /** The rule that let it run. */
  rule?: string;
  /** The client that is asked to run it. */
  client_id?: string;
}

/** A long tool reports. */
export interface ToolProgressEvent {
  type: "tool_progress";
  /** Id of the turn. */
  turn_id: string;
  /** Its number, dense from 1: the `id` of the SSE frame. */
  seq: number;
  /** milliseconds since 1970 */
  timestamp: number;
  /** The model call it belongs to, from 1. */
  step?: number;
  /** Position of the block in the message, from 0. */
  block?: number;
  /** The tool call concerned. */
  tool_id?: string;
  progress?: number;
  total?: number;
  message?: string;
  /** Output as it comes, appended. */
  output_delta?: string;
}

/** Outcome of the call, which closes its block. Exactly one for each `tool_use`. */
export interface ToolResultEvent {
  type: "tool_result";
  /** Id of the turn. */
  turn_id: string;
  /** Its number, dense from 1: the `id` of the SSE frame. */
  seq: number;
  /** milliseconds since 1970 */
  timestamp: number;
  /** The model call it belongs to, from 1. */
  step?: number;
  /** Position of the block in the message, from 0. */
  block?: number;
  /** The tool call concerned. */
  tool_id?: string;
  status: "success" | "error" | "denied" | "cancelled" | "timed_out" | "not_started" | "unknown";
  /** Its first 64 KiB. */
  output?: string;
  /** The structured form. */
  output_value?: unknown;
  output_media?: Media[];
  /** Bytes of the whole output. */
  output_size?: number;
  output_spilled_to?: string;
  output_summary?: string;
  error?: ToolError;
  /** Of a denied call. */
  rule?: string;
  /** milliseconds since 1970 */
  started_at?: number;
  duration_ms?: number;
  /** Of a client-side call: whether it took effect. */
  applied?: boolean;
  /** True if the model receives it. */
  seen_by_model?: boolean;
}

/** Sound, appended to the audio block. */
export interface AudioDeltaEvent {
  type: "audio_delta";
  /** Id of the turn. */
  turn_id: string;
  /** Its number, dense from 1: the `id` of the SSE frame. */
  seq: number;
  /** milliseconds since 1970 */
  timestamp: number;
  /** The model call it belongs to, from 1. */
  step?: number;
  /** Position of the block in the message, from 0. */
  block?: number;
  /** The tool call concerned. */
  tool_id?: string;
  format?: string;
  /** In Hz. */
  sample_rate?: number;
  /** Base64. */
  data: string;
  transcript?: string;
}

/** A message that the user sent in mid-turn is taken in. */
export interface UserMessageEvent {
  type: "user_message";
  /** Id of the turn. */
  turn_id: string;
  /** Its number, dense from 1: the `id` of the SSE frame. */
  seq: number;
  /** milliseconds since 1970 */
  timestamp: number;
  /** The model call it belongs to, from 1. */
  step?: number;
  /** Position of the block in the message, from 0. */
  block?: number;
  /** The tool call concerned. */
  tool_id?: string;
  id?: string;
  input: UserPart[];
}

/** Nothing moves for a known reason. */
export interface WaitingEvent {
  type: "waiting";
  /** Id of the turn. */
  turn_id: string;
  /** Its number, dense from 1: the `id` of the SSE frame. */
  seq: number;
  /** milliseconds since 1970 */
  timestamp: number;
  /** The model call it belongs to, from 1. */
  step?: number;
  /** Position of the block in the message, from 0. */
  block?: number;
  /** The tool call concerned. */
  tool_id?: string;
  reason: "first_byte" | "rate_limit" | "retry" | "store" | "client";
  /** milliseconds since 1970 */
  until?: number;
  why?: string;
}

/** A finding of the decoder or the loop guard. */
export interface ProblemEvent {
  type: "problem";
  /** Id of the turn. */
  turn_id: string;
  /** Its number, dense from 1: the `id` of the SSE frame. */
  seq: number;
  /** milliseconds since 1970 */
  timestamp: number;
  /** The model call it belongs to, from 1. */
  step?: number;
  /** Position of the block in the message, from 0. */
  block?: number;
  /** The tool call concerned. */
  tool_id?: string;
  code: string;
  /** Byte of the body. */
  at?: number;
  excerpt?: string;
  remedy?: string;
}

/** Totals, right before the end. */
export interface SessionStatsEvent {
  type: "session_stats";
  /** Id of the turn. */
  turn_id: string;
  /** Its number, dense from 1: the `id` of the SSE frame. */
  seq: number;
  /** milliseconds since 1970 */
  timestamp: number;
  /** The model call it belongs to, from 1. */
  step?: number;
  /** Position of the block in the message, from 0. */
  block?: number;
  /** The tool call concerned. */
  tool_id?: string;
  /** Model calls. */
  steps: number;
  /** Tool calls. */
  calls: number;
  usage: Usage;
  /** From the first event to this one, in milliseconds. */
  wall_ms: number;
  /** To the first content, in milliseconds. */
  first_content_ms?: number;
  /** Tool time that overlapped with the model's stream, in milliseconds. */
  saved_by_eager_ms: number;
  segments: WaterfallSegment[];
}

/** The turn failed; right after the error block of the same content. */
export interface ErrorEvent {
  type: "error";
  /** Id of the turn. */
  turn_id: string;
  /** Its number, dense from 1: the `id` of the SSE frame. */
  seq: number;
  /** milliseconds since 1970 */
  timestamp: number;
  /** The model call it belongs to, from 1. */
  step?: number;
  /** Position of the block in the message, from 0. */
  block?: number;
  /** The tool call concerned. */
  tool_id?: string;
  /** A stable code. */
  code: string;
  /** Description of the failure. */
  what: string;
  /** Cause. */
  why: string;
  /** Remedy. */
  remedy: string;
  /** Trying the same again may help. */
  retryable: boolean;
  /** HTTP status of the upstream, if it answered with one. */
  status?: number;
  /** Delay before the next attempt that the upstream asked for, in milliseconds. */
  retry_after_ms?: number;
}

/** Another process took the turn over. */
export interface TurnResumedEvent {
  type: "turn_resumed";
  /** Id of the turn. */
  turn_id: string;
  /** Its number, dense from 1: the `id` of the SSE frame. */
  seq: number;
  /** milliseconds since 1970 */
  timestamp: number;
  /** The model call it belongs to, from 1. */
  step?: number;
  /** Position of the block in the message, from 0. */
  block?: number;
  /** The tool call concerned. */
  tool_id?: string;
  epoch: number;
}

/** The block is replaced by what follows, but for its first characters. */
export interface BlockSupersededEvent {
  type: "block_superseded";
  /** Id of the turn. */
  turn_id: string;
  /** Its number, dense from 1: the `id` of the SSE frame. */
  seq: number;
  /** milliseconds since 1970 */
  timestamp: number;
  /** The model call it belongs to, from 1. */
  step?: number;
  /** Position of the block in the message, from 0. */
  block?: number;
  /** The tool call concerned. */
  tool_id?: string;
  keep_chars: number;
}

/** The end: exactly one, last. */
export interface StreamEndEvent {
  type: "stream_end";
  /** Id of the turn. */
  turn_id: string;
  /** Its number, dense from 1: the `id` of the SSE frame. */
  seq: number;
  /** milliseconds since 1970 */
  timestamp: number;
  /** The model call it belongs to, from 1. */
  step?: number;
  /** Position of the block in the message, from 0. */
  block?: number;
  /** The tool call concerned. */
  tool_id?: string;
  status: "completed" | "length" | "limit" | "error" | "cancelled" | "interrupted";
}

/** The message so far, as a viewer asked for it. It is in no log. */
export interface SnapshotEvent {
  type: "snapshot";
  /** Id of the turn. */
  turn_id: string;
  /** Number of the last event in it: the `id` of the SSE frame. The events after it follow. */
  last_seq: number;
  message: Message;
}

/** The viewer's state disagrees with the log: replace it by this message. It is in no log. */
export interface ResyncEvent {
  type: "resync";
  /** Id of the turn. */
  turn_id: string;
  /** Number of the last event in it: the `id` of the SSE frame. The events after it follow. */
  last_seq: number;
  message: Message;
}

/** The log takes nothing now, so nothing can be shown. It is in no log and has no number. */
export interface StoreUnavailableEvent {
  type: "waiting";
  /** Id of the turn. */
  turn_id: string;
  /** milliseconds since 1970 */
  timestamp: number;
  reason: "store";
  /** Since when. */
  why: string;
}

/** Event for a viewer of a turn: the `data` of a frame of `GET /v1/turns/{turn_id}/events`. */
export type ViewerEvent = Event | SnapshotEvent | ResyncEvent | StoreUnavailableEvent;

/** One part of a message. */
export type Block =
  | {
      kind: "text";
      text: string;
      /** True if more may follow. */
      state: "open" | "closed";
      code?: string;
      citations?: unknown[];
    }
  | {
      kind: "thinking";
      text: string;
      /** True if more may follow. */
      state: "open" | "closed";
    }
  | {
      kind: "tool_call";
      tool_id?: string;
      step?: number;
      tool_name?: string;
      title?: string;
      source?: string;
      effect?: "pure" | "read" | "cosmetic" | "idempotent" | "write" | "external";
      status?:
        | "preparing"
        | "queued"
        | "awaiting_approval"
        | "running"
        | "success"
        | "error"
        | "denied"
        | "cancelled"
        | "timed_out"
        | "not_started"
        | "unknown";
      input_summary?: string;
      /** Argument text so far. */
      input_text?: string;
      /** Final arguments. */
      arguments?: unknown;
      raw?: string;
      /** The arguments that a person put in place of those. */
      ran_with?: unknown;
      problem?: string;
      seal?: "explicit" | "terminal" | "successor" | "balanced";
      /** The open question. */
      approval?: {
        approval_id: string;
        question: string;
        rule: string;
        /** milliseconds since 1970 */
        expires_at?: number;
        /**
         * The arguments that would run, as JSON text for people: nothing in it is invisible, and it reads as
         * the same value.
         */
        arguments_text?: string;
        arguments_hash?: string;
        fingerprint?: string;
        kind?: "elicitation";
        schema?: unknown;
        url?: string;
      };
      rule?: string;
      early?: boolean;
      attempts?: number;
      progress?: {
        progress?: number;
        total?: number;
        message?: string;
        output_delta?: string;
      };
      output?: string;
      output_value?: unknown;
      output_media?: Media[];
      output_size?: number;
      output_summary?: string;
      error?: ToolError;
      /** milliseconds since 1970 */
      started_at?: number;
      duration_ms?: number;
      applied?: boolean;
      seen_by_model?: boolean;
      /** The client that is asked to run it. */
      client_id?: string;
    }
  | {
      kind: "audio";
      data: string[];
      format?: string;
      sample_rate?: number;
      transcript: string;
      /** True if more may follow. */
      state: "open" | "closed";
    }
  | {
      kind: "image";
      media_type: string;
      data?: string;
      /**
       * The file that holds the content, in place of `data`, if it is too large for the log: `GET
       * /v1/files/{file_id}/content`.
       */
      file_id?: string;
      /** Size in bytes. */
      bytes?: number;
    }
  | {
      kind: "notice";
      code: string;
      text: string;
    }
  | {
      kind: "error";
      /** A stable code. */
      code: string;
      /** Description of the failure. */
      what: string;
      /** Cause. */
      why: string;
      /** Remedy. */
      remedy: string;
      /** Trying the same again may help. */
      retryable: boolean;
      /** HTTP status of the upstream, if it answered with one. */
      status?: number;
      /** Delay before the next attempt that the upstream asked for, in milliseconds. */
      retry_after_ms?: number;
    }
  | {
      kind: "user_message";
      id?: string;
      input: UserPart[];
    }
  | {
      kind: "unrecognised";
    };

/** What can be asked of the server, by method and path. WebSockets are none of these. */
export interface Operations {
  /** Check that the server process is alive. */
  "GET /healthz": {
    /** Healthy */
    response: HealthStatus;
  };
  /** Get metrics in the Prometheus text format. */
  "GET /metrics": {
    /** The text format, version 0.0.4 */
    response: string;
  };
  /** Check that the server accepts new turns: reads from and writes to the store at most once a second. */
  "GET /readyz": {
    /** Healthy */
    response: HealthStatus;
  };
  /**
   * Create a chat completion at the base URL `/render/{render}/v1`, which selects how tools are shown unless
   * the request or the
   * model's name does.
   */
  "POST /render/{render}/v1/chat/completions": {
    path: {
      /** `none`, `text`, `details`, `reasoning` or `owui_event` */
      render: string;
    };
    /** As at `/v1/chat/completions`. */
    body: Record<string, unknown>;
    /** A `chat.completion`, or its chunks */
    response: Record<string, unknown>;
  };
  /** List agents and models at the base URL `/render/{render}/v1`, which selects how tools are shown. */
  "GET /render/{render}/v1/models": {
    path: {
      /** `none`, `text`, `details`, `reasoning` or `owui_event` */
      render: string;
    };
    /** Agents by name, then models */
    response: ModelList;
  };
  /** List the fields of an agent for a form: the purpose and the default of each. */
  "GET /v1/agent-fields": {
    query?: {
      /** A tag such as `en` or `zh-CN`; English if it is absent or unsupported. */
      language?: string;
    };
    /** The complete list */
    response: AgentFields;
  };
  /** List agents: those of the configuration first, each by name. */
  "GET /v1/agents": {
    /** The complete list */
    response: AgentInfoPage;
  };
  /** Create an agent. New turns can use it. */
  "POST /v1/agents": {
    body: CreateAgent;
    /** Created */
    response: AgentDetail;
  };
  /** Get an agent with its settings. */
  "GET /v1/agents/{agent}": {
    path: {
      /** Name */
      agent: string;
    };
    /** The agent */
    response: AgentDetail;
  };
  /** Replace the settings of an agent. */
  "PUT /v1/agents/{agent}": {
    path: {
      /** Name */
      agent: string;
    };
    body: ReplaceAgent;
    /** The new state */
    response: AgentDetail;
  };
  /** Delete an agent. Running turns keep it. */
  "DELETE /v1/agents/{agent}": {
    path: {
      /** Name */
      agent: string;
    };
    /** Deleted */
    response: undefined;
  };
  /** Duplicate any agent; the copy can be changed. */
  "POST /v1/agents/{agent}/duplicate": {
    path: {
      /** Name of the original */
      agent: string;
    };
    body: DuplicateAgent;
    /** Created */
    response: AgentDetail;
  };
  /**
   * Preview agent settings, checked as if they were saved.
   *
   * Nothing is saved, and nothing runs. The rules are those of a turn, including your remembered approvals.
   */
  "POST /v1/agents/{agent}/preview": {
    path: {
      /** Name */
      agent: string;
    };
    body: PreviewAgent;
    /** The preview */
    response: AgentPreview;
  };
  /** Get the prompt of an agent, with its cost in tokens. */
  "GET /v1/agents/{agent}/prompt": {
    path: {
      /** Name */
      agent: string;
    };
    query?: {
      /** `auto`, `native` or `text`; absent for the agent's own. */
      mode?: "auto" | "native" | "text";
      /** `vcp` or `xml`; absent for the agent's own. Implies `text`. */
      protocol?: "vcp" | "xml";
    };
    /** Prompt, tools and tokens */
    response: PromptPreview;
  };
  /** Toggle tools of an agent by name, group or source. */
  "PATCH /v1/agents/{agent}/toggles": {
    path: {
      /** Name */
      agent: string;
    };
    body: UpdateToggles;
    /** The new state */
    response: AgentDetail;
  };
  /** List all tools for an agent: those that it is offered, and the reason for each of the others. */
  "GET /v1/agents/{agent}/tools": {
    path: {
      /** Name */
      agent: string;
    };
    query?: {
      /** `auto`, `native` or `text`; absent for the agent's own. */
      mode?: "auto" | "native" | "text";
      /** `vcp` or `xml`; absent for the agent's own. Implies `text`. */
      protocol?: "vcp" | "xml";
    };
    /** Every tool by name */
    response: ToolInfoPage;
  };
  /** Create a chat completion in the format of OpenAI. Streamed (`text/event-stream`) if `stream` is true. */
  "POST /v1/chat/completions": {
    /**
     * OpenAI's format; `model` is an agent or `upstream/model`. Extensions of this server are in
     * `throughline`.
     */
    body: {
      model: string;
      messages: {
        role: "system" | "developer" | "user" | "assistant" | "tool" | "function";
      }[];
      stream?: boolean | null;
    };
    /** A `chat.completion`, or its chunks */
    response: Record<string, unknown>;
  };
  /**
   * Declare the tools that a client runs.
   *
   * They are offered in new turns of the same user. A `tool_start` event that names the client asks it to run
   * a call; submit the
   * result with `POST /v1/turns/{turn_id}/calls/{tool_id}/result`.
   */
  "PUT /v1/clients/{client_id}/tools": {
    path: {
      /** Id that the client chooses */
      client_id: string;
    };
    body: DeclareTools;
    /** Declared */
    response: ToolDeclaration;
  };
  /** Create a text completion at the model's upstream. Streamed if the upstream streams. */
  "POST /v1/completions": {
    /** OpenAI's format; `model` is `upstream/model`, or an agent, whose model is used. */
    body: Record<string, unknown>;
    /** The upstream's response */
    response: Record<string, unknown>;
  };
  /** List conversations, most recently active first. */
  "GET /v1/conversations": {
    query?: {
      /** Only those with this text in title, input or answer, whatever its case. */
      q?: string;
      /** `next` of the previous page. */
      cursor?: string;
      /** Maximum number of rows, 1 to 200. Default 50. */
      limit?: number;
    };
    /** One page */
    response: ConversationInfoPage;
  };
  /**
   * Create a conversation without turns.
   *
   * Not needed before a first turn: `POST /v1/turns` creates one.
   */
  "POST /v1/conversations": {
    body: CreateConversation;
    /** Created */
    response: ConversationInfo;
  };
  /**
   * Import a conversation from an export in JSON Lines or from a list of OpenAI messages.
   *
   * Everything gets new ids. Nothing is fetched, and no model is called.
   */
  "POST /v1/conversations/import": {
    /** A file of `export`, or `[{"role": "user", "content": "…"}, …]` */
    body:
      | unknown[]
      | {
          messages: unknown[];
        }
      | string;
    /** Created */
    response: ConversationInfo;
  };
  /** Get a conversation with the tree of its turns. */
  "GET /v1/conversations/{conversation_id}": {
    path: {
      /** Id of the conversation */
      conversation_id: string;
    };
    /** The conversation and its turns in short */
    response: ConversationTree;
  };
  /** Delete a conversation with its turns, their logs and calls, and files that nothing else uses. */
  "DELETE /v1/conversations/{conversation_id}": {
    path: {
      /** Id of the conversation */
      conversation_id: string;
    };
    /** Deleted */
    response: undefined;
  };
  /** Rename a conversation, or select another branch of it. */
  "PATCH /v1/conversations/{conversation_id}": {
    path: {
      /** Id of the conversation */
      conversation_id: string;
    };
    body: UpdateConversation;
    /** The new state */
    response: ConversationInfo;
  };
  /** Export a conversation: everything as JSON Lines, or one branch as Markdown. */
  "GET /v1/conversations/{conversation_id}/export": {
    path: {
      /** Id of the conversation */
      conversation_id: string;
    };
    query?: {
      /** `jsonl` (everything, can be imported again) or `markdown` (one branch, for people). */
      format?: "jsonl" | "markdown";
      /** Of Markdown: the last turn of the branch; absent = the conversation's leaf. */
      leaf?: string;
    };
    /** The file */
    response: string;
  };
  /** Fork a conversation at a turn, or at an event of it, into a new conversation. */
  "POST /v1/conversations/{conversation_id}/fork": {
    path: {
      /** Id of the conversation */
      conversation_id: string;
    };
    body: ForkConversation;
    /** A new conversation with copies of the turns up to there */
    response: ConversationInfo;
  };
  /** List the messages of one branch. */
  "GET /v1/conversations/{conversation_id}/messages": {
    path: {
      /** Id of the conversation */
      conversation_id: string;
    };
    query?: {
      /** The last turn of the branch; absent = the conversation's leaf. */
      leaf?: string;
      /** Only messages before this turn: `before` of the previous response. */
      before?: string;
      /** Maximum number of messages, 1 to 200. Default 50, the newest. */
      limit?: number;
    };
    /** Part of the branch, oldest first */
    response: BranchMessages;
  };
  /**
   * Decode a recorded response of an upstream into its reply, its problems, and the events that a viewer
   * would have seen.
   *
   * The body is the recording, streamed or whole, or a form with it. Nothing is stored or run.
   */
  "POST /v1/decode": {
    query?: {
      /**
       * The wire format: `openai-chat`, `openai-responses`, `anthropic`, `gemini`, `ollama`, `cohere`,
       * `bedrock-converse`,
       * `bedrock-anthropic`. Absent = the one that fits best.
       */
      api?:
        | "openai-chat"
        | "openai-responses"
        | "anthropic"
        | "gemini"
        | "ollama"
        | "cohere"
        | "bedrock-converse"
        | "bedrock-anthropic";
      /** Treat `<think>` in the text as thinking, as turns do. Default true. */
      think?: boolean;
      /** Language of findings: `en` or `zh-CN`. Default `en`. */
      language?: string;
    };
    body?: Blob | Uint8Array<ArrayBuffer> | FormData;
    /** The result */
    response: DecodedRecording;
  };
  /** Create embeddings at the model's upstream. */
  "POST /v1/embeddings": {
    /** OpenAI's format; `model` is `upstream/model`. */
    body: Record<string, unknown>;
    /** The upstream's response */
    response: Record<string, unknown>;
  };
  /** List files, newest first. */
  "GET /v1/files": {
    query?: {
      /** `next` of the previous page. */
      cursor?: string;
      /** Maximum number of rows, 1 to 200. Default 50. */
      limit?: number;
    };
    /** One page */
    response: FileInfoPage;
  };
  /**
   * Upload a file: a form with one file in it, or the file itself as the body.
   *
   * The media type is detected from the content. A declared type that the content contradicts is refused.
   */
  "POST /v1/files": {
    query?: {
      /** File name. Not needed for `multipart/form-data`, which has its own. */
      name?: string;
    };
    body: Blob | Uint8Array<ArrayBuffer> | FormData;
    /** Created */
    response: FileInfo;
  };
  /** Get the metadata of a file. */
  "GET /v1/files/{file_id}": {
    path: {
      /** Id of the file */
      file_id: string;
    };
    /** The metadata */
    response: FileInfo;
  };
  /**
   * Delete a file and its content, even if conversations use it. Models are told that it was deleted.
   *
   * Files of at most `media_inline_bytes_max` are part of the conversation itself and stay there.
   */
  "DELETE /v1/files/{file_id}": {
    path: {
      /** Id of the file */
      file_id: string;
    };
    /** Deleted */
    response: undefined;
  };
  /** Download the content of a file, always as an attachment. */
  "GET /v1/files/{file_id}/content": {
    path: {
      /** Id of the file */
      file_id: string;
    };
    /** The bytes with their media type */
    response: Blob;
  };
  /** List tool calls, newest first. */
  "GET /v1/history/calls": {
    query?: {
      /** Name of the tool. */
      tool?: string;
      /** Source of the tool. */
      source?: string;
      /** Status, or several separated by commas. */
      status?: string;
      /** Id of the conversation. */
      conversation_id?: string;
      /** Id of the turn. */
      turn_id?: string;
      /** Started at this time or later, in milliseconds since 1970. */
      from?: number;
      /** Started before this time, in milliseconds since 1970. */
      until?: number;
      /** Minimum run time in milliseconds, exclusive. */
      longer_than_ms?: number;
      /** Text in name, arguments, summary or error; case-insensitive. */
      q?: string;
      /** `next` of the previous page. */
      cursor?: string;
      /** Maximum number of rows, 1 to 200. Default 50. */
      limit?: number;
    };
    /** One page */
    response: CallInfoPage;
  };
  /** Get a call with its arguments, output and events. */
  "GET /v1/history/calls/{tool_id}": {
    path: {
      /** Id of the call */
      tool_id: string;
    };
    /** The details */
    response: CallDetail;
  };
  /** Count tool calls by status and tool. */
  "GET /v1/history/counts": {
    query?: {
      /** Name of the tool. */
      tool?: string;
      /** Source of the tool. */
      source?: string;
      /** Status, or several separated by commas. */
      status?: string;
      /** Id of the conversation. */
      conversation_id?: string;
      /** Id of the turn. */
      turn_id?: string;
      /** Started at this time or later, in milliseconds since 1970. */
      from?: number;
      /** Started before this time, in milliseconds since 1970. */
      until?: number;
      /** Minimum run time in milliseconds, exclusive. */
      longer_than_ms?: number;
      /** Text in name, arguments, summary or error; case-insensitive. */
      q?: string;
      /** `next` of the previous page. */
      cursor?: string;
      /** Maximum number of rows, 1 to 200. Default 50. */
      limit?: number;
    };
    /** The counts */
    response: CallCountsInfo;
  };
  /** Export tool calls, newest first, as JSON Lines or CSV; at most 100,000. */
  "GET /v1/history/export": {
    query?: {
      /** `jsonl` or `csv`. */
      format?: "jsonl" | "csv";
      /** Name of the tool. */
      tool?: string;
      /** Source of the tool. */
      source?: string;
      /** Status, or several separated by commas. */
      status?: string;
      /** Id of the conversation. */
      conversation_id?: string;
      /** Id of the turn. */
      turn_id?: string;
      /** Started at this time or later, in milliseconds since 1970. */
      from?: number;
      /** Started before this time, in milliseconds since 1970. */
      until?: number;
      /** Minimum run time in milliseconds, exclusive. */
      longer_than_ms?: number;
      /** Text in name, arguments, summary or error; case-insensitive. */
      q?: string;
    };
    /** The file */
    response: string;
  };
  /** Get metrics of a time span: time to first token, speed, tools and errors, with series for charts. */
  "GET /v1/history/metrics": {
    query?: {
      /** Begun then or later, in milliseconds since 1970. Default: 24 hours before `until`. */
      from?: number;
      /** Begun before, in milliseconds since 1970. Default: now. */
      until?: number;
      /** Into how many parts the time is cut, 1 to 200. Default 48. */
      buckets?: number;
    };
    /** Metrics of the user's own turns and calls */
    response: MetricsInfo;
  };
  /** List keys, without their secrets. */
  "GET /v1/keys": {
    /** All keys, including revoked ones */
    response: KeyList;
  };
  /** Create a key. Only this response shows its secret. */
  "POST /v1/keys": {
    body: CreateKey;
    /** Created */
    response: CreatedKey;
  };
  /** Revoke a key. Its streams and sockets end within a second. */
  "DELETE /v1/keys/{key_id}": {
    path: {
      /** Id */
      key_id: string;
    };
    /** Revoked */
    response: undefined;
  };
  /** List agents and models. */
  "GET /v1/models": {
    /** Agents by name, then models */
    response: ModelList;
  };
  /** Get an agent or model. Names of models contain slashes. */
  "GET /v1/models/{id}": {
    path: {
      /** An agent, or `upstream/model` */
      id: string;
    };
    /** The model */
    response: ModelEntry;
  };
  /** Get this document. Needs no key. */
  "GET /v1/openapi.json": {
    /** OpenAPI 3.1 */
    response: Record<string, unknown>;
  };
  /** Parse a reply for tool calls, with the outlook of each. Runs nothing. */
  "POST /v1/parse": {
    body: ParseText;
    /** The result */
    response: ParsedReply;
  };
  /** List prompts of an agent with their cost in tokens: native, and every text protocol. */
  "GET /v1/prompts": {
    query?: {
      /** Name of the agent; absent for the server's default agent. */
      agent?: string;
    };
    /** One per mode */
    response: PromptPreviewPage;
  };
  /** Get the question behind an approval link. Needs no key. */
  "POST /v1/question-links": {
    body: QuestionLink;
    /** The open question */
    response: LinkedQuestions;
  };
  /** Answer an approval link, once. The chat continues with its next message. Needs no key. */
  "POST /v1/question-links/answer": {
    body: AnswerLink;
    /** Answered */
    response: LinkAck;
  };
  /** List remembered approvals, oldest first. */
  "GET /v1/remembered": {
    query?: {
      /** Those that hold in this conversation too; absent = only those that always hold. */
      conversation_id?: string;
      /** `true`: those of every conversation too. */
      everywhere?: boolean;
      /** `next` of the previous page. */
      cursor?: string;
      /** Maximum number of rows, 1 to 200. Default 200. */
      limit?: number;
    };
    /** One page */
    response: RememberedApprovalPage;
  };
  /** Forget a remembered approval: the next such call asks again. */
  "DELETE /v1/remembered/{number}": {
    path: {
      /** Number of the approval */
      number: number;
    };
    /** Deleted */
    response: undefined;
  };
  /** Search titles, inputs and answers. */
  "GET /v1/search": {
    query: {
      /** The text. `%`, `_` and `*` mean themselves. */
      q: string;
      /** `next` of the previous page. */
      cursor?: string;
      /** Maximum number of rows, 1 to 200. Default 50. */
      limit?: number;
    };
    /** Matches with the text around them, newest first */
    response: SearchResultPage;
  };
  /**
   * Exchange a sign-in link for a key, once. `throughline serve` prints the link at its start. Needs no key.
   */
  "POST /v1/sign-in": {
    body: SignInRequest;
    /** Created */
    response: CreatedKey;
  };
  /** Report late frames of a page. */
  "POST /v1/telemetry/frames": {
    body: FrameReport;
    /** Counted, up to a plausible maximum */
    response: undefined;
  };
  /** Create a one-time ticket for `EventSource` and `WebSocket`, which cannot send a key. */
  "POST /v1/tickets": {
    /** Created */
    response: CreatedTicket;
  };
  /** List tools with their sources and the faults of those. */
  "GET /v1/tools": {
    query?: {
      /** Name of the agent; absent for the server's default agent. */
      agent?: string;
    };
    /** The complete list */
    response: ToolList;
  };
  /** Get a tool with its definition. */
  "GET /v1/tools/{tool}": {
    path: {
      /** Its name: `group.method` */
      tool: string;
    };
    /** The tool */
    response: ToolInfo;
  };
  /**
   * Call a tool manually, under the rules of an agent. The call is not part of any conversation.
   *
   * A tool that may change something needs `confirm: true`. A tool that a rule denies stays denied. If the
   * request is
   * aborted, the tool is stopped.
   */
  "POST /v1/tools/{tool}/call": {
    path: {
      /** Its name: `group.method` */
      tool: string;
    };
    body: CallTool;
    /** The call's outcome */
    response: ToolCallResult;
  };
  /** List the turns that run on this server or are parked here, oldest first, on one page. */
  "GET /v1/turns": {
    /** All turns that have not ended */
    response: OpenTurnInfoPage;
  };
  /**
   * Start a turn.
   *
   * With `Accept: text/event-stream` the response is the turn's event stream, and `Location` names the turn.
   * For 24 hours,
   * the same `Idempotency-Key` with the same body gives the same turn.
   */
  "POST /v1/turns": {
    body: StartTurn;
    /** The event stream if `Accept` asks for it, or the turn of an earlier request with this key */
    response: TurnStarted;
  };
  /**
   * Get the current state of a turn. Its message plus the events after `last_seq` equal all of its events.
   */
  "GET /v1/turns/{turn_id}": {
    path: {
      /** Id of the turn */
      turn_id: string;
    };
    /** The current state */
    response: TurnSnapshot;
  };
  /**
   * Answer a question, or `all` that are open.
   *
   * The first answer counts; repeating it succeeds. If a cancellation and an answer race, one of them wins,
   * and every
   * client gets the same outcome.
   */
  "POST /v1/turns/{turn_id}/approvals/{approval_id}": {
    path: {
      /** Id of the turn */
      turn_id: string;
      /** Id of the question, or `all` */
      approval_id: string;
    };
    body: ResolveApproval;
    /** Answered */
    response: ApprovalAck;
  };
  /** Cancel one call; the turn continues. */
  "POST /v1/turns/{turn_id}/calls/{tool_id}/cancel": {
    path: {
      /** Id of the turn */
      turn_id: string;
      /** Id of the call */
      tool_id: string;
    };
    /** Accepted: the call is ending or has ended; its `tool_result` tells */
    response: CallAck;
  };
  /** Submit the result of a call that the client was asked to run. The first result in time counts. */
  "POST /v1/turns/{turn_id}/calls/{tool_id}/result": {
    path: {
      /** Id of the turn */
      turn_id: string;
      /** Id of the call */
      tool_id: string;
    };
    body: CallResult;
    /** Accepted as the call's outcome */
    response: CallAck;
  };
  /** Cancel a turn. Finished work stays. A second request does not wait for running tools to end. */
  "POST /v1/turns/{turn_id}/cancel": {
    path: {
      /** Id of the turn */
      turn_id: string;
    };
    /** Accepted: the turn will stop or has already ended; its events tell */
    response: undefined;
  };
  /** Follow a turn, from any place in it. */
  "GET /v1/turns/{turn_id}/events": {
    path: {
      /** Id of the turn */
      turn_id: string;
    };
    query?: {
      /**
       * The number of the last event that was seen; 0 or absent = from the first. Comes before
       * `Last-Event-ID`.
       */
      after?: number;
      /** `snapshot`: begin with the message as it is now. */
      from?: "snapshot";
      /** A key for one use, in place of a header: `POST /v1/tickets`. The gate has looked at it already. */
      ticket?: string;
    };
    /** The events, to the last one */
    response: ReadableStream<Uint8Array> | undefined;
  };
  /** List queued messages. */
  "GET /v1/turns/{turn_id}/messages": {
    path: {
      /** Id of the turn */
      turn_id: string;
    };
    /** Oldest first */
    response: QueuedMessageList;
  };
  /** Send a message to a running turn. */
  "POST /v1/turns/{turn_id}/messages": {
    path: {
      /** Id of the turn */
      turn_id: string;
    };
    body: SendMessage;
    /** Queued; a `user_message` event reports the delivery */
    response: SentMessage;
  };
  /** Retract a queued message. */
  "DELETE /v1/turns/{turn_id}/messages/{message_id}": {
    path: {
      /** Id of the turn */
      turn_id: string;
      /** Id of the message */
      message_id: string;
    };
    /** Retracted; returns its parts */
    response: Record<string, unknown>;
  };
  /** Get the waterfall of a turn: its wall time by activity, to the millisecond. */
  "GET /v1/turns/{turn_id}/waterfall": {
    path: {
      /** Id of the turn */
      turn_id: string;
    };
    /** Segments without gaps */
    response: WaterfallInfo;
  };
  /** List upstreams with their addresses and whether each has a key, but never the key. */
  "GET /v1/upstreams": {
    /** All upstreams, by name */
    response: UpstreamInfoPage;
  };
  /** List known upstreams with what each needs to be connected; those on this machine are probed. */
  "GET /v1/upstreams/known": {
    /** The complete list */
    response: KnownUpstreamPage;
  };
  /**
   * Connect an upstream. Its models are listed, and one is asked for a token if it is named; then the key is
   * stored, and new
   * turns can use the upstream. Responses never contain a key.
   */
  "POST /v1/upstreams/{upstream}/connect": {
    path: {
      /** A name from `/v1/upstreams/known`, one from the configuration, or, with `base_url`, a new one */
      upstream: string;
    };
    body: ConnectUpstream;
    /** Connected */
    response: ConnectedUpstream;
  };
  /** Delete an upstream's stored key and connection. Running turns keep it. */
  "DELETE /v1/upstreams/{upstream}/key": {
    path: {
      /** Name */
      upstream: string;
    };
    /** Deleted */
    response: undefined;
  };
}

/** How answers are read that are no JSON. */
export const NOT_JSON: { readonly [operation in keyof Operations]?: "text" | "bytes" | "events" } = {
  "GET /metrics": "text",
  "GET /v1/conversations/{conversation_id}/export": "text",
  "GET /v1/files/{file_id}/content": "bytes",
  "GET /v1/history/export": "text",
  "GET /v1/turns/{turn_id}/events": "events",
};
