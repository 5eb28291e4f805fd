// Generated from openapi.json by `cargo xtask typescript --write`: do not edit.

/** A value of JSON. */
export type Json = string | number | boolean | null | Json[] | { [name: string]: Json };

/** An agent with all that it is. */
export type AgentDetail = AgentInfo & {
  /** What `[agents.NAME]` would say, defaults included. */
  settings: AgentSettings;
};

/** A field of `AgentSettings`. */
export interface AgentField {
  /** Of a choice: all that may be said. */
  choices?: string[];
  /** What holds where nothing is said; absent = nothing does, or the model decides. */
  default?: unknown;
  /** What it does, and what it means if it is empty, off or 0. */
  help: string;
  /** `model`, `lines` (a list of texts), `text`, `switch`, `number`, `choice` or `json` (an object). */
  kind: string;
  /** What people call it. */
  label: string;
  /** Where it is. */
  path: string;
  /** Of a number: `ms`, `bytes` or `tokens`; absent = it counts something. */
  unit?: string | null;
}

/** The fields of an agent. */
export interface AgentFields {
  /**
   * In the order of a form. `policy` and `tool_call.tool_toggles` are no single values and have no field
   * here.
   */
  parts: PartInfo[];
}

/** An agent in short. */
export interface AgentInfo {
  /** Why it cannot be used now. */
  fault?: string | null;
  /** It answers when none is named. */
  is_default: boolean;
  /** How calls travel: `auto`, `native` or `text`. */
  mode: string;
  /** The first of its models, as `upstream/model`. */
  model?: string | null;
  /** Its name. */
  name: string;
  /** `file` = of the configuration, `stored` = made over the API. */
  origin: string;
  /** It cannot be changed here: duplicate it to have one that can. */
  read_only: boolean;
  /** Whether it has tools at all. */
  tools_enabled: boolean;
  /** Milliseconds since 1970. Absent = it is of the configuration. */
  updated_at?: number | null;
  /** Grows with each change. Absent = it is of the configuration. */
  version?: number | null;
  /**
   * What is most likely not meant: rules that fit no tool there is, each with the nearest name. Absent =
   * nothing.
   */
  warnings?: string[];
}

/** What settings would come to. */
export interface AgentPreview {
  call?: CallOutlook | null;
  /** What the model would be told, in each way of telling it: natively, and in every text protocol. */
  prompts: PromptPreview[];
  /** As they would be saved: defaults included. */
  settings: AgentSettings;
  /** The tools as the agent would find them. */
  tools: Tools;
}

/**
 * What `[agents.NAME]` of the configuration may say, as JSON: the same fields, checks and messages. See
 * docs/configuration.md for each of them.
 */
export interface AgentSettings {
  /** Further fields of the request body. */
  extra?: Record<string, unknown>;
  /** Models to go on with when this one cannot be had, before the first token only. */
  fallback?: string[];
  /** When the model goes in circles. */
  guard?: Record<string, unknown>;
  /** Bounds that differ from those of all agents. */
  limits?: Record<string, unknown>;
  /** Most tokens of one step. */
  max_output_tokens?: number | null;
  /** How calls travel: `auto`, `native` or `text`. */
  mode?: "auto" | "native" | "text" | null;
  /** `upstream/model`, at an upstream that there is. */
  model: string;
  /** What becomes of a turn whose process died, when another takes it over: `continue` or `end`. */
  on_interrupted?: "continue" | "end" | null;
  /** What may run unasked, and what may not run at all; the first rule that fits decides. */
  policy?: unknown[];
  /** Template of the system prompt. */
  prompt?: string | null;
  /** What becomes of a message in mid-turn: `next_step` or `after_turn`. */
  steering?: "next_step" | "after_turn" | null;
  /** 0 to 2. */
  temperature?: number | null;
  /** Use of tools. */
  tool_call?: ToolCallSettings;
}

/** An answer. */
export interface AnswerToLink {
  /** `approve` or `deny`. */
  decision: "approve" | "deny";
  /** What stands behind `#`. */
  link: string;
  /** Why; a denial's reason is told to the model. */
  reason?: string | null;
}

/** What became of an answer. */
export interface Answered {
  /** `resolved`: it is in the log. `queued`: the question has not been asked yet and will be answered so. */
  status: string;
}

/** What became of it. */
export interface AnsweredLink {
  /** `resolved`: it is in the log. */
  status: string;
}

/** An answer. */
export interface Approve {
  /**
   * Run it with these arguments instead: a full replacement. Of a running tool's question: what is filled in.
   */
  arguments?: Record<string, unknown> | null;
  /**
   * Hash of the arguments that were looked at, from the question: if they are others by now, the answer is
   * refused.
   */
  arguments_hash?: string | null;
  /**
   * `approve` or `deny`. A running tool's own question: `approve` accepts it with what is in `arguments`,
   * `deny` declines.
   */
  decision: "approve" | "deny";
  /** Why; a denial's reason is told to the model. */
  reason?: string | null;
  remember?: RememberFor | null;
}

/** Messages of a branch, oldest first. */
export interface Branch {
  /** `before` of the part in front of this one; absent = it begins here. */
  before?: string | null;
  /** Its last turn. */
  leaf_id?: string | null;
  /** Oldest first. */
  messages: BranchMessage[];
}

/** One message of a branch. */
export interface BranchMessage {
  /** The branch goes on after this event of it; absent = after all of it. */
  cut_at?: number | null;
  /** The fold of the turn's events: what the user said, and the blocks of the answer. */
  message: Message;
  /** `running`, or how it ended. */
  status: string;
  /** The turn that wrote it. */
  turn_id: string;
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

/** A call with all that is known of it. */
export type CallDetail = CallInfo & {
  /** Its block in the message. */
  call: ToolCall;
  /** What it produced, for people: nothing in it is invisible. */
  output_text: string;
  /** What the model was told about it; absent = it was told nothing (yet). */
  seen_by_model?: string | null;
  /** What happened to it, in order. */
  timeline: Moment[];
};

/** A tool call in short. */
export interface CallInfo {
  /** As JSON, or the text that is not JSON; its beginning if it is long. */
  arguments: string;
  /** The same for people: nothing in it is invisible, and JSON reads as the same value. */
  arguments_text: string;
  /** In which conversation. */
  conversation_id?: string | null;
  /** How long it ran, in milliseconds. */
  duration_ms?: number | null;
  /** What the tool may do. */
  effect: string;
  /** Why it failed. */
  error?: string | null;
  /** What came out, in short. */
  output_summary?: string | null;
  /** Where the tool comes from. */
  source: string;
  /** When it began to run, or was announced if it never ran; milliseconds since 1970. */
  started_at: number;
  /** As in `tool_result`, or what it is doing now. */
  status: string;
  /** In which step, from 1. */
  step: number;
  /** Its id. */
  tool_id: string;
  /** Name of the tool. */
  tool_name: string;
  /** In which turn. */
  turn_id: string;
}

/** What would become of a call. */
export interface CallOutlook {
  /** `runs`, `asks`, `denied` or `not_started`. */
  outlook: string;
  /** The rule that decides: `rule:2 allow files.*` is the second of the policy. */
  rule?: string | null;
  /** Why it would not run. */
  why?: string | null;
}

/** How a call ended that a client was asked to run. */
export interface CallResult {
  /** Whether it took effect where the user can see it. */
  applied?: boolean | null;
  /** What it produced, or what went wrong: a text as it is, anything else as JSON. */
  output?: string | number | boolean | Record<string, unknown> | unknown[] | null;
  /** Whether it worked. */
  status: "success" | "error";
}

/** What became of it. */
export interface CallTold {
  /** `accepted`, `cancelling` or `ended`. */
  status: string;
}

/** A tool to be run by hand. */
export interface CallTool {
  /** Whose rules hold; absent = the server's own agent. */
  agent?: string | null;
  /** What it is given: an object that fits its schema. */
  arguments?: Record<string, unknown>;
  /** It may change something, or a rule asks, and that is wanted. Needed for everything but reading. */
  confirm?: boolean;
}

/** How calls went. */
export interface CallsMetrics {
  /** How long they ran, in milliseconds. */
  duration_ms: Spread;
  /** `failed` in `finished`, from 0 to 1. */
  error_rate?: number | null;
  /** Those of them that are no `success`. */
  failed: number;
  /** Those that ran to an end of their own: `success`, `error`, `timed_out` or `unknown`. */
  finished: number;
  /** All that began in the time. */
  total: number;
}

/** Switches of tools. `null` takes a switch away. */
export interface ChangeToggles {
  /** By source (`mcp:files`): every tool that it has now. */
  sources?: Record<string, boolean | null>;
  /** By name of a tool (`files.read`) or a group (`files`). */
  tools?: Record<string, boolean | null>;
}

/** What an upstream is connected with. */
export interface Connect {
  /**
   * A stored agent that is given the model, and made if there is none of the name: a copy of the one that
   * answers by default.
   */
  agent?: string | null;
  /** An address of one's own. Takes the scope `admin` on a connection from the server's own machine. */
  base_url?: string | null;
  /** How it is spoken to there. Default: `openai-chat`. */
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
  /**
   * The models that it says it has, the newest first where it says when each was made. Empty = it does not
   * say.
   */
  models: string[];
  /** As it is now. */
  upstream: UpstreamInfo;
}

/** A conversation. */
export interface Conversation {
  /** Milliseconds since 1970. */
  created_at: number;
  /** Its id. */
  id: string;
  /** The turn that a new one continues if nothing else is said. */
  leaf_id?: string | null;
  /** The turn that runs in it now. */
  running_turn_id?: string | null;
  /** Given, or the first words of the first input. */
  title: string;
  /** `given`, or `input` = the first words of the first input. */
  title_by: string;
  /** How many turns it has, all branches counted. */
  turns: number;
  /** When something last happened in it, in milliseconds since 1970. */
  updated_at: number;
}

/** A conversation with all its turns. */
export type ConversationTree = Conversation & {
  /** All its turns, oldest first: a tree by `parent`. */
  tree: TurnNode[];
};

/** How many of something. */
export interface CountInfo {
  /** How many. */
  count: number;
  /** Of what. */
  name: string;
}

/** How many calls there are. */
export interface CountsInfo {
  /** By status, the most frequent first. */
  by_status: CountInfo[];
  /** By tool, the most frequent first. */
  by_tool: CountInfo[];
  /** All. */
  total: number;
}

/** A new agent. */
export interface CreateAgent {
  /** 1 to 64 letters, digits, `-`, `_` or `.`. */
  name: string;
  /** What it is. */
  settings: AgentSettings;
}

/** A new conversation. */
export interface CreateConversation {
  /** Absent = the first words of the first input, when it comes. */
  title?: string | null;
}

/** What a client can do. */
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

/** They are declared. */
export interface Declared {
  /** Which client. */
  client_id: string;
  /** How many tools it has now. */
  tools: number;
  /** Say it again before this time is over, in milliseconds, or they are no longer offered. */
  valid_ms: number;
}

/** A form with one recording in it. */
export interface DecodeForm {
  /** The recording. */
  file: Blob;
}

/** What a recording holds. */
export interface Decoded {
  /** The wire format that it was read as. */
  api: string;
  /** How large it is. */
  bytes: number;
  /** The calls, in order. */
  calls: DecodedCall[];
  /** `complete`, `truncated` or `error`. */
  end: string;
  /** What the upstream said, if it reported an error. */
  error?: string | null;
  /** Why the model stopped, as the upstream said it. */
  finish?: string | null;
  /** What the recording may be instead of a stream, and what helps. */
  mistakes: DecodedMistake[];
  /** What a viewer would have been told, piece by piece. */
  pieces: DecodedPiece[];
  /** There are more than 20,000 events: those beyond are not told one by one. */
  pieces_cut: boolean;
  /** What was wrong, in order. */
  problems: DecodedProblem[];
  /** All text. */
  text: string;
  /** All thinking. */
  thinking: string;
  usage?: Usage | null;
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

/** What a recording may be instead of a stream. */
export interface DecodedMistake {
  /** A stable word. */
  code: string;
  /** What helps. */
  remedy: string;
  /** What it is. */
  what: string;
}

/** A piece of a recording, a line most often, and what came of it. */
export interface DecodedPiece {
  /** Events of a turn. */
  events: Event[];
  /** The line that it ends in, from 1. */
  line: number;
}

/** A finding in a recording. */
export interface DecodedProblem {
  /** In bytes of the recording. */
  at: number;
  /** The bytes concerned, at most 200. */
  excerpt: string;
  /** A stable word. */
  kind: string;
  /** From 1. */
  line: number;
  /** A sentence. */
  message: string;
}

/** A copy that can be changed. */
export interface DuplicateAgent {
  /** Its name. */
  name: string;
}

/** `{"error": {...}}` */
export interface ErrorBody {
  /** What went wrong. */
  error: ErrorContent;
}

/** What went wrong. */
export interface ErrorContent {
  /** A stable word. */
  code: string;
  /** What happened, in a sentence. */
  message: string;
  /** The field, parameter or header that is concerned. Always there, since OpenAI clients expect it. */
  param?: string | null;
  /** What can be done about it. */
  remedy?: string | null;
  /** The class that OpenAI clients know. */
  type: string;
  /** What else programs should know. */
  [name: string]: unknown;
}

/** One item of a turn's log. Ignore types and fields that you do not know. */
export type Event =
  | Event_stream_start
  | Event_step_start
  | Event_step_end
  | Event_block_start
  | Event_block_end
  | Event_content_delta
  | Event_thinking
  | Event_citation
  | Event_tool_use
  | Event_tool_input_delta
  | Event_tool_input_reset
  | Event_tool_input
  | Event_approval_request
  | Event_approval_resolved
  | Event_tool_redefined
  | Event_tool_start
  | Event_tool_progress
  | Event_tool_result
  | Event_audio_delta
  | Event_user_message
  | Event_waiting
  | Event_problem
  | Event_session_stats
  | Event_error
  | Event_turn_resumed
  | Event_block_superseded
  | Event_stream_end;

/** A call that nobody has made. */
export interface ExampleCall {
  /** What it would be given. */
  arguments?: Record<string, unknown>;
  /** `group.method`. */
  tool: string;
}

/** What is known of a model. Absent = not known. */
export interface Facts {
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

/** Something of a source that is not as it should be. The rest works on. */
export interface FaultInfo {
  /** What is wrong. */
  message: string;
  /** What can be done about it. */
  remedy?: string | null;
  /** Which of its tools; absent = all of it. */
  tool?: string | null;
}

/** A file. */
export interface FileInfo {
  /** How large it is. */
  bytes: number;
  /** Milliseconds since 1970. */
  created_at: number;
  /** BLAKE3 of its content, in hex. */
  hash: string;
  /** Its id: `{"type": "file", "file_id": …}` in the input of a turn. */
  id: string;
  /** What it is, by its content. */
  media_type: string;
  /** As its maker calls it. */
  name: string;
}

/** Where a conversation is to go on in another way, as a conversation of its own. */
export interface Fork {
  /** Only up to this event of it; absent = all of it. */
  seq?: number | null;
  /** Absent = that of the conversation. */
  title?: string | null;
  /** The last turn that is taken along. */
  turn_id: string;
}

/** A place where a text was found. */
export interface Found {
  /** Milliseconds since 1970. */
  at: number;
  /** In which conversation. */
  conversation_id: string;
  /** `title`, `input` or `answer`. */
  part: string;
  /** What stands around it. */
  snippet: string;
  /** Its title. */
  title: string;
  /** In which turn; absent = in the title. */
  turn_id?: string | null;
}

/** What a page reports about its own drawing. */
export interface FramesSeen {
  /** Frames that came late. */
  jank_frames: number;
  /** Over how long, in milliseconds. */
  window_ms: number;
}

/** How it is. */
export interface Health {
  /** `ok`, `draining`, `no_room` (turns that run can finish) or `store_unavailable`. */
  status: string;
  /** Why it takes no turns. */
  why?: string | null;
}

/** A part of what the user says. */
export type InputPart =
  | {
      /** The text. */
      text: string;
      type: "text";
    }
  | {
      /** From `POST /v1/files`. */
      file_id: string;
      type: "image";
    }
  | {
      /** From `POST /v1/files`. */
      file_id: string;
      type: "file";
    };

/** Keys. */
export interface KeyList {
  /** Newest first. */
  data: Pass[];
}

/** A key that was made. */
export type KeyMade = Pass & {
  /** The key itself. It is shown this once. */
  key: string;
};

/** A key that is wanted. */
export interface KeyWanted {
  /** From then on it is worth nothing; milliseconds since 1970. Default: never. */
  expires_at?: number | null;
  /** What its owner calls it. */
  name: string;
  /** What it allows. Default: `chat`. */
  scopes?: ScopeName[] | null;
}

/** An upstream that is known by name. */
export interface KnownUpstream {
  /** Where it is. */
  address: string;
  /** Whether it answers; of those that run on this machine. */
  answers?: boolean | null;
  /** Whether turns can use it now. */
  connected: boolean;
  /** How it is spoken to. */
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
  /** What is worth knowing. */
  note: string;
  /** What it calls itself. */
  title: string;
}

/** A tool that is not offered. */
export interface LeftOutInfo {
  /** The tool. */
  name: string;
  /** The first reason that holds. */
  why: string;
}

/** Whether a call may run. */
export interface LinkedQuestion {
  /** What it would run with, whole, as JSON text with nothing in it that cannot be seen. */
  arguments: string;
  /** In words, with nothing in them that cannot be seen. */
  question: string;
}

/** What a link asks. */
export interface LinkedQuestions {
  /** One for each call. */
  questions: LinkedQuestion[];
}

/** Some rows of a list, and where the next ones begin. */
export interface Listed_AgentInfo {
  /** Newest first, unless the list says otherwise. */
  items: {
    /** Why it cannot be used now. */
    fault?: string | null;
    /** It answers when none is named. */
    is_default: boolean;
    /** How calls travel: `auto`, `native` or `text`. */
    mode: string;
    /** The first of its models, as `upstream/model`. */
    model?: string | null;
    /** Its name. */
    name: string;
    /** `file` = of the configuration, `stored` = made over the API. */
    origin: string;
    /** It cannot be changed here: duplicate it to have one that can. */
    read_only: boolean;
    /** Whether it has tools at all. */
    tools_enabled: boolean;
    /** Milliseconds since 1970. Absent = it is of the configuration. */
    updated_at?: number | null;
    /** Grows with each change. Absent = it is of the configuration. */
    version?: number | null;
    /**
     * What is most likely not meant: rules that fit no tool there is, each with the nearest name. Absent =
     * nothing.
     */
    warnings?: string[];
  }[];
  /** `cursor` of the next page; absent = there is nothing more. */
  next?: string | null;
  /**
   * Not everything that comes before `next` could be looked at in the time that a search may take, or
   * something just
   * said is not in the index yet: ask for `next`, or again. There may be no items although there are more.
   */
  partial?: boolean;
}

/** Some rows of a list, and where the next ones begin. */
export interface Listed_CallInfo {
  /** Newest first, unless the list says otherwise. */
  items: {
    /** As JSON, or the text that is not JSON; its beginning if it is long. */
    arguments: string;
    /** The same for people: nothing in it is invisible, and JSON reads as the same value. */
    arguments_text: string;
    /** In which conversation. */
    conversation_id?: string | null;
    /** How long it ran, in milliseconds. */
    duration_ms?: number | null;
    /** What the tool may do. */
    effect: string;
    /** Why it failed. */
    error?: string | null;
    /** What came out, in short. */
    output_summary?: string | null;
    /** Where the tool comes from. */
    source: string;
    /** When it began to run, or was announced if it never ran; milliseconds since 1970. */
    started_at: number;
    /** As in `tool_result`, or what it is doing now. */
    status: string;
    /** In which step, from 1. */
    step: number;
    /** Its id. */
    tool_id: string;
    /** Name of the tool. */
    tool_name: string;
    /** In which turn. */
    turn_id: string;
  }[];
  /** `cursor` of the next page; absent = there is nothing more. */
  next?: string | null;
  /**
   * Not everything that comes before `next` could be looked at in the time that a search may take, or
   * something just
   * said is not in the index yet: ask for `next`, or again. There may be no items although there are more.
   */
  partial?: boolean;
}

/** Some rows of a list, and where the next ones begin. */
export interface Listed_Conversation {
  /** Newest first, unless the list says otherwise. */
  items: {
    /** Milliseconds since 1970. */
    created_at: number;
    /** Its id. */
    id: string;
    /** The turn that a new one continues if nothing else is said. */
    leaf_id?: string | null;
    /** The turn that runs in it now. */
    running_turn_id?: string | null;
    /** Given, or the first words of the first input. */
    title: string;
    /** `given`, or `input` = the first words of the first input. */
    title_by: string;
    /** How many turns it has, all branches counted. */
    turns: number;
    /** When something last happened in it, in milliseconds since 1970. */
    updated_at: number;
  }[];
  /** `cursor` of the next page; absent = there is nothing more. */
  next?: string | null;
  /**
   * Not everything that comes before `next` could be looked at in the time that a search may take, or
   * something just
   * said is not in the index yet: ask for `next`, or again. There may be no items although there are more.
   */
  partial?: boolean;
}

/** Some rows of a list, and where the next ones begin. */
export interface Listed_FileInfo {
  /** Newest first, unless the list says otherwise. */
  items: {
    /** How large it is. */
    bytes: number;
    /** Milliseconds since 1970. */
    created_at: number;
    /** BLAKE3 of its content, in hex. */
    hash: string;
    /** Its id: `{"type": "file", "file_id": …}` in the input of a turn. */
    id: string;
    /** What it is, by its content. */
    media_type: string;
    /** As its maker calls it. */
    name: string;
  }[];
  /** `cursor` of the next page; absent = there is nothing more. */
  next?: string | null;
  /**
   * Not everything that comes before `next` could be looked at in the time that a search may take, or
   * something just
   * said is not in the index yet: ask for `next`, or again. There may be no items although there are more.
   */
  partial?: boolean;
}

/** Some rows of a list, and where the next ones begin. */
export interface Listed_Found {
  /** Newest first, unless the list says otherwise. */
  items: {
    /** Milliseconds since 1970. */
    at: number;
    /** In which conversation. */
    conversation_id: string;
    /** `title`, `input` or `answer`. */
    part: string;
    /** What stands around it. */
    snippet: string;
    /** Its title. */
    title: string;
    /** In which turn; absent = in the title. */
    turn_id?: string | null;
  }[];
  /** `cursor` of the next page; absent = there is nothing more. */
  next?: string | null;
  /**
   * Not everything that comes before `next` could be looked at in the time that a search may take, or
   * something just
   * said is not in the index yet: ask for `next`, or again. There may be no items although there are more.
   */
  partial?: boolean;
}

/** Some rows of a list, and where the next ones begin. */
export interface Listed_KnownUpstream {
  /** Newest first, unless the list says otherwise. */
  items: {
    /** Where it is. */
    address: string;
    /** Whether it answers; of those that run on this machine. */
    answers?: boolean | null;
    /** Whether turns can use it now. */
    connected: boolean;
    /** How it is spoken to. */
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
    /** What is worth knowing. */
    note: string;
    /** What it calls itself. */
    title: string;
  }[];
  /** `cursor` of the next page; absent = there is nothing more. */
  next?: string | null;
  /**
   * Not everything that comes before `next` could be looked at in the time that a search may take, or
   * something just
   * said is not in the index yet: ask for `next`, or again. There may be no items although there are more.
   */
  partial?: boolean;
}

/** Some rows of a list, and where the next ones begin. */
export interface Listed_OpenTurnInfo {
  /** Newest first, unless the list says otherwise. */
  items: {
    /** Who answers. */
    agent: string;
    /** The conversation that it belongs to; absent = none. */
    conversation_id?: string | null;
    /** `upstream/model` that it began with. */
    model?: string | null;
    /** Since when it is parked, in milliseconds since 1970. */
    parked_at?: number | null;
    /** Milliseconds since 1970. */
    started_at: number;
    /** Which turn: `GET /v1/turns/{turn_id}` shows it, `POST …/cancel` stops it. */
    turn_id: string;
    waits_for?: WaitsFor | null;
  }[];
  /** `cursor` of the next page; absent = there is nothing more. */
  next?: string | null;
  /**
   * Not everything that comes before `next` could be looked at in the time that a search may take, or
   * something just
   * said is not in the index yet: ask for `next`, or again. There may be no items although there are more.
   */
  partial?: boolean;
}

/** Some rows of a list, and where the next ones begin. */
export interface Listed_PromptPreview {
  /** Newest first, unless the list says otherwise. */
  items: {
    /** Which agent. */
    agent: string;
    /** Tools that are not offered, and why. */
    left_out: LeftOutInfo[];
    /** How calls travel. */
    mode: string;
    /** The system prompt, tools included if they travel as text. */
    prompt: string;
    /** The text protocol, if they travel as text. */
    protocol?: string | null;
    /** What it costs. */
    tokens: TokensInfo;
    /** Names of the offered tools. */
    tools: string[];
    /** What `{{ tools }}` stands for; empty if tools travel natively. */
    tools_text: string;
    /** `tools("…")` of the prompt that mean nothing. */
    unmatched: string[];
  }[];
  /** `cursor` of the next page; absent = there is nothing more. */
  next?: string | null;
  /**
   * Not everything that comes before `next` could be looked at in the time that a search may take, or
   * something just
   * said is not in the index yet: ask for `next`, or again. There may be no items although there are more.
   */
  partial?: boolean;
}

/** Some rows of a list, and where the next ones begin. */
export interface Listed_RememberedAnswer {
  /** Newest first, unless the list says otherwise. */
  items: {
    /**
     * The same as it is kept: `decision`, `scope`, `tool`, `fingerprint`, `arguments_hash`, `arguments`,
     * `reason`, `question`.
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
  /** `cursor` of the next page; absent = there is nothing more. */
  next?: string | null;
  /**
   * Not everything that comes before `next` could be looked at in the time that a search may take, or
   * something just
   * said is not in the index yet: ask for `next`, or again. There may be no items although there are more.
   */
  partial?: boolean;
}

/** Some rows of a list, and where the next ones begin. */
export interface Listed_ToolInfo {
  /** Newest first, unless the list says otherwise. */
  items: {
    /** Whether it asks first where no rule says otherwise. */
    asks: boolean;
    /** Whether models may call it at all. */
    callable: boolean;
    /** What it does, for the model. */
    description: string;
    /** What it may do: `pure`, `read`, `cosmetic`, `idempotent`, `write` or `external`. */
    effect: string;
    /** `group.method`. */
    name: string;
    /** Whether the agent is offered it. */
    offered: boolean;
    /** JSON Schema of its arguments. */
    parameters: Record<string, unknown>;
    /** `here`, or `client` = in a connected page or app. */
    runs_on: string;
    /** Where it comes from: `builtin`, `mcp:files`, ... */
    source: string;
    /** Its time limit, in milliseconds. */
    timeout_ms: number;
    /** What people call it. */
    title: string;
    /** Why not. */
    why_not?: string | null;
    /** Its name at upstreams. */
    wire_name: string;
  }[];
  /** `cursor` of the next page; absent = there is nothing more. */
  next?: string | null;
  /**
   * Not everything that comes before `next` could be looked at in the time that a search may take, or
   * something just
   * said is not in the index yet: ask for `next`, or again. There may be no items although there are more.
   */
  partial?: boolean;
}

/** Some rows of a list, and where the next ones begin. */
export interface Listed_UpstreamInfo {
  /** Newest first, unless the list says otherwise. */
  items: {
    /** Where it is, for whoever runs the server (scope `admin`). */
    address?: string | null;
    /** How it is spoken to. */
    dialect: string;
    /**
     * Whether it was connected while the server ran, and so can be forgotten; for whoever runs the server
     * (scope `admin`).
     */
    is_stored?: boolean | null;
    /** `present`, `missing`, or `not_needed`. */
    key: string;
    /**
     * Where a key that is present comes from: `environment`, which comes first, `stored` (when it was
     * connected), or `program`.
     */
    key_from?: string | null;
    /** The environment variable that should hold the key, for whoever runs the server (scope `admin`). */
    key_variable?: string | null;
    /** What is known of these: how much they read and write, and what they take. */
    model_facts: Record<string, unknown>;
    /** Models that agents of yours use there. */
    models: string[];
    /** The part before the `/` of `upstream/model`. */
    name: string;
  }[];
  /** `cursor` of the next page; absent = there is nothing more. */
  next?: string | null;
  /**
   * Not everything that comes before `next` could be looked at in the time that a search may take, or
   * something just
   * said is not in the index yet: ask for `next`, or again. There may be no items although there are more.
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
  /** Absent while it goes on. */
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
    /** Tool time beside the model's stream, in milliseconds. */
    saved_by_eager_ms?: number;
    segments?: Segment[];
  };
  error?: Fault;
  stopped?: boolean;
}

/** How fast and how well things went in a time. */
export interface MetricsInfo {
  /** Calls that wait for a person now. */
  approvals_waiting: number;
  /** How long a part of it is; the last one may be shorter. */
  bucket_ms: number;
  /** The time in parts, without gaps. */
  buckets: BucketMetrics[];
  /** All calls. */
  calls: CallsMetrics;
  /** Calls by status, the most frequent first. */
  calls_by_status: CountInfo[];
  /** There are more calls in the time: all figures of calls are those of the newest. */
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
  /** There are more turns in the time: all figures of turns are those of the newest. */
  turns_cut: boolean;
  /** When it ends. */
  until: number;
}

/** One model, in OpenAI's form. */
export type Model = Facts & {
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
  data: Model[];
  /** `list` */
  object: string;
}

/** A moment of a call. */
export interface Moment {
  /** Since the moment before, in milliseconds. */
  after_ms: number;
  /** Milliseconds since 1970. */
  at: number;
  /** How many such events in a row it stands for. */
  count: number;
  /** The event without what every event has; of several in a row, the last. */
  detail: Record<string, unknown>;
  /** The event's type. */
  event: string;
  /** Number of the event. */
  seq: number;
}

/** What happens to a turn when its last viewer is gone. */
export type OnDisconnect = "continue" | "cancel";

/** A turn that has not ended. */
export interface OpenTurnInfo {
  /** Who answers. */
  agent: string;
  /** The conversation that it belongs to; absent = none. */
  conversation_id?: string | null;
  /** `upstream/model` that it began with. */
  model?: string | null;
  /** Since when it is parked, in milliseconds since 1970. */
  parked_at?: number | null;
  /** Milliseconds since 1970. */
  started_at: number;
  /** Which turn: `GET /v1/turns/{turn_id}` shows it, `POST …/cancel` stops it. */
  turn_id: string;
  waits_for?: WaitsFor | null;
}

/** What a turn continues. */
export interface ParentTurn {
  /** Only up to this event of it; absent = all of it. */
  seq?: number | null;
  /** A turn of the same conversation. */
  turn_id: string;
}

/** A reply to be looked through. */
export interface ParseText {
  /** Whose rules hold; absent = the server's own agent. */
  agent?: string | null;
  /** `vcp` or `xml`; absent = each where it finds something. */
  protocol?: "vcp" | "xml" | null;
  /** The reply, at most 1 MiB. */
  text: string;
}

/** What a reply holds. */
export interface Parsed {
  /** Calls and refused blocks, in the order of the text. */
  requests: ParsedRequest[];
  /** What a reader would see: all but markup. */
  text: string;
  /** What else there is to know, in the order of the text. */
  warnings: ParsedWarning[];
}

/** A call in a text, or a block that is none. */
export interface ParsedRequest {
  /** The arguments, if they could be read. */
  arguments?: Record<string, unknown> | null;
  /** The same as JSON text for people: nothing in it is invisible, and it reads as the same value. */
  arguments_text?: string | null;
  /** In characters, from 1. */
  column: number;
  /** The byte behind it. */
  end: number;
  /** The text protocol, or the format of a leaked call. */
  format: string;
  /** It is another model's markup, and not of a text protocol. */
  leaked: boolean;
  /** From 1. */
  line: number;
  /** As it was written. */
  name: string;
  /** `runs`, `asks`, `denied` or `not_started`. */
  outlook: string;
  /** The rule that decides. */
  rule?: string | null;
  /** First byte of the block. */
  start: number;
  /** The tool that it means. */
  tool?: string | null;
  /** Why it would not run. */
  why?: string | null;
}

/** A finding in a text. */
export interface ParsedWarning {
  /** In bytes of the text. */
  at: number;
  /** In characters, from 1. */
  column: number;
  /** A stable word. */
  kind: string;
  /** From 1. */
  line: number;
  /** A sentence. */
  message: string;
}

/** Fields that belong together. */
export interface PartInfo {
  /** Its fields. */
  fields: AgentField[];
  /** What holds for all of its fields. */
  help?: string;
  /** What people call it. */
  label: string;
  /** A stable word. */
  name: string;
}

/** What is known of a key, without its secret. */
export interface Pass {
  /** Milliseconds since 1970, as all times here. */
  created_at: number;
  /** From then on it is worth nothing. */
  expires_at?: number | null;
  /** The part of the key that is no secret. */
  id: string;
  /** To the minute. */
  last_used_at?: number | null;
  /** What its owner calls it. */
  name: string;
  /** Since then it is worth nothing. */
  revoked_at?: number | null;
  /** What it allows: `chat`, `tools`, `admin`. */
  scopes: string[];
  /** Whose it is. */
  user: string;
}

/** Something that was said before. */
export interface PastMessage {
  /** What. */
  content: string;
  /** Who said it. */
  role: Role;
}

/** Settings that are not saved. */
export interface PreviewAgent {
  call?: ExampleCall | null;
  /** What the agent would be. */
  settings: AgentSettings;
}

/** What an agent is told in one way of telling it. */
export interface PromptPreview {
  /** Which agent. */
  agent: string;
  /** Tools that are not offered, and why. */
  left_out: LeftOutInfo[];
  /** How calls travel. */
  mode: string;
  /** The system prompt, tools included if they travel as text. */
  prompt: string;
  /** The text protocol, if they travel as text. */
  protocol?: string | null;
  /** What it costs. */
  tokens: TokensInfo;
  /** Names of the offered tools. */
  tools: string[];
  /** What `{{ tools }}` stands for; empty if tools travel natively. */
  tools_text: string;
  /** `tools("…")` of the prompt that mean nothing. */
  unmatched: string[];
}

/** A link that a chat shows beside a question. */
export interface QuestionLink {
  /** What stands behind `#`. */
  link: string;
}

/** A message that waits. */
export interface Queued {
  /** By which it can be taken back. */
  id: string;
  /** Its parts. */
  input: Record<string, unknown>[];
  /** What it waits for. */
  when: string;
}

/** Messages that wait, oldest first. */
export interface QueuedMessages {
  /** Those. */
  messages: Queued[];
}

/** For which arguments an answer holds. */
export type RememberArguments = RememberNamed | Record<string, unknown>;

/** For how long, and for which arguments. */
export interface RememberChoice {
  arguments?: RememberArguments | null;
  /** An older name of the same: `exact`, `any`, or `{"arguments": {…}}` with the tests. */
  constraints?: "exact" | "any" | null;
  /** For how long. */
  scope: RememberScope;
}

/**
 * For how long an answer holds, and for which arguments. It always holds for the tool as it is defined now,
 * and no other.
 */
export type RememberFor = RememberScope | RememberChoice;

/** For which arguments an answer holds, in a word. */
export type RememberNamed = "these" | "any";

/** For how long an answer holds. */
export type RememberScope = "call" | "turn" | "conversation" | "always";

/** An answer that is remembered. */
export interface RememberedAnswer {
  /**
   * The same as it is kept: `decision`, `scope`, `tool`, `fingerprint`, `arguments_hash`, `arguments`,
   * `reason`, `question`.
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
  /** The question that was answered so; absent in what earlier releases kept. */
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

/** An agent in place of the one there is. */
export interface ReplaceAgent {
  /** What it is. */
  settings: AgentSettings;
  /**
   * The version that was changed: another one there by now is a conflict. Absent = whatever is there is
   * replaced.
   */
  version?: number | null;
}

/** Who said something. */
export type Role = "user" | "assistant";

/** A message was taken. */
export interface SaidSo {
  /** By which it can be taken back, and found in the turn's events. */
  id: string;
}

/** Something to be said to a running turn. */
export interface Say {
  /** An id of one's own, unique in the turn: saying it twice is saying it once. */
  id?: string | null;
  /** What. */
  input: InputPart[];
  /** `next_step` (default): the model answers it in this turn. `after_turn`: the next turn begins with it. */
  when?: "next_step" | "after_turn";
}

/** What a key may be used for. */
export type ScopeName = "chat" | "tools" | "admin";

/** A stretch of time with one name. */
export interface SegmentInfo {
  /** `first_token`, `thinking`, `text`, `arguments`, `approval_wait`, `tool`, `retry` or `engine`. */
  kind: string;
  /** How long, in milliseconds. */
  ms: number;
  /** Milliseconds since 1970. */
  start: number;
  /** In which step. */
  step?: number | null;
  /** Which call, for tools and approvals. */
  tool_id?: string | null;
}

/** What stands behind `#sign-in=` of the link that `throughline serve` prints. */
export interface SignIn {
  /** As it stands there. */
  ticket: string;
}

/** A turn as it stands. */
export interface Snapshot {
  /** The last event that is in it: go on with `events?after=<last_seq>`. */
  last_seq: number;
  /** The message with its blocks: the fold of the events. */
  message: Message;
  /** `running`, or how it ended: `completed`, `length`, `limit`, `error`, `cancelled`, `interrupted`. */
  status: string;
  /** Tokens of all steps. */
  usage: Usage;
}

/** Where tools come from. */
export interface SourceInfo {
  /** What is not as it should be. */
  faults: FaultInfo[];
  /** `builtin`, `mcp:files`, ... */
  name: string;
  /** How many tools it has now. */
  tools: number;
}

/** What the tools of one source cost. */
export interface SourceTokensInfo {
  /** The source. */
  source: string;
  /** Tokens of their definitions. */
  tokens: number;
  /** How many of its tools are offered. */
  tools: number;
}

/** Middle and upper end of some values. */
export interface Spread {
  /** How many values there are. */
  count: number;
  /** Half of them are at most this: the nearest rank, so one of the values. */
  p50?: number | null;
  /** 95 of 100 are at most this. */
  p95?: number | null;
}

/** A turn to be started. */
export interface StartTurn {
  /** Who answers; absent = the server's own agent. */
  agent?: string | null;
  /** The conversation to go on with. Absent, and without `messages`: a new one. */
  conversation_id?: string | null;
  /** What the user says. */
  input: InputPart[];
  /** What was said before, in place of a conversation: the turn stands alone then. */
  messages?: PastMessage[] | null;
  /** `native`, `text` or `auto`: how calls travel to the model. Absent = as the agent says. */
  mode?: "auto" | "native" | "text" | null;
  /** `upstream/model` in place of the agent's. */
  model?: string | null;
  /** What happens when the last viewer is gone. Default `continue`. */
  on_disconnect?: OnDisconnect;
  /**
   * The turn to go on from. Absent = the branch that was last gone on with; `null` = none: begin the
   * conversation anew
   * beside what is there.
   */
  parent_id?: string | null;
  /** Go on from this event of the parent instead of from its end: a fork. */
  parent_seq?: number | null;
}

/** One event as it comes in a stream. */
export interface StreamedEvent {
  /** An `Event` as JSON, a `chat.completion.chunk`, or `[DONE]`. */
  data: string;
  /** What it is: the `type` of the event; absent in chat completions. */
  event?: string | null;
  /** Its number in the turn, for `Last-Event-ID`; absent where there is nothing to come back to. */
  id?: string | null;
}

/** A ticket. */
export interface TicketMade {
  /** How long it can be used, in milliseconds. */
  expires_in_ms: number;
  /** For `?ticket=`, once. */
  ticket: string;
}

/** Tokens of everything that is sent before the conversation. */
export interface TokensInfo {
  /** `exact` or `estimated`. */
  counting: string;
  /** The prompt alone. */
  prompt: number;
  /** The tools by their source. */
  sources: SourceTokensInfo[];
  /** All of it. */
  total: number;
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

/** Use of tools. */
export interface ToolCallSettings {
  /** What is not named there. Default true. */
  default_tool_enabled?: boolean;
  /** Whether it has any. Default false. */
  enabled?: boolean;
  /** Steps with calls in a turn. Default 5. */
  max_iterations?: number;
  /** `auto`, or `manual`: each call waits for a person. */
  mode?: "auto" | "manual" | null;
  /** Run calls of a step beside each other. */
  parallel_execution?: boolean;
  /** Protocol of text mode: `vcp` or `xml`. */
  protocol?: "vcp" | "xml";
  /** Ask before every call. */
  require_confirmation?: boolean;
  /** Who says the results in text mode: `user` or `tool`. */
  results?: "user" | "tool";
  /** When tools that change nothing start: `eager` or `after_stream`. */
  start?: "eager" | "after_stream";
  /** Time limit of a tool that has none of its own, in milliseconds. */
  timeout_ms?: number;
  /** A group or one method, on or off; the more exact name wins. */
  tool_toggles?: Record<string, boolean>;
}

/** How a tool ended. */
export interface ToolCalled {
  /** How long it ran, in milliseconds. */
  duration_ms: number;
  /** What it produced, cut to its head and tail if it is long. */
  output?: string | null;
  /** Pictures and sounds, as `{media_type, data}` with base64. */
  output_media?: Record<string, unknown>[];
  /** Bytes of the whole output. */
  output_size?: number | null;
  /** The structured form. */
  output_value?: Record<string, unknown>;
  /** The rule that let it run, or that asked for `confirm`. */
  rule: string;
  /** Milliseconds since 1970. */
  started_at: number;
  /** `success`, `error`, `timed_out`, `cancelled`, `not_started` or `unknown`. */
  status: string;
  /** What a model would be told. */
  told_to_model: string;
}

/** A tool, and whether an agent is offered it. */
export interface ToolInfo {
  /** Whether it asks first where no rule says otherwise. */
  asks: boolean;
  /** Whether models may call it at all. */
  callable: boolean;
  /** What it does, for the model. */
  description: string;
  /** What it may do: `pure`, `read`, `cosmetic`, `idempotent`, `write` or `external`. */
  effect: string;
  /** `group.method`. */
  name: string;
  /** Whether the agent is offered it. */
  offered: boolean;
  /** JSON Schema of its arguments. */
  parameters: Record<string, unknown>;
  /** `here`, or `client` = in a connected page or app. */
  runs_on: string;
  /** Where it comes from: `builtin`, `mcp:files`, ... */
  source: string;
  /** Its time limit, in milliseconds. */
  timeout_ms: number;
  /** What people call it. */
  title: string;
  /** Why not. */
  why_not?: string | null;
  /** Its name at upstreams. */
  wire_name: string;
}

/** How the calls of one tool went. */
export type ToolMetrics = CallsMetrics & {
  /** Which tool. */
  tool_name: string;
};

/** The tools that there are. */
export interface Tools {
  /** By name, those without tools too. */
  sources: SourceInfo[];
  /** By name. */
  tools: ToolInfo[];
  /** Switches of the agent that switch nothing now. */
  unknown_toggles: string[];
}

/**
 * A turn in a tree. Turns with the same parent are siblings: with another input an edit, with the same a
 * regeneration.
 */
export interface TurnNode {
  /** Which agent answered. */
  agent: string;
  /** The beginning of the answer. */
  answer: string;
  /** Milliseconds since 1970. */
  created_at: number;
  /** Milliseconds since 1970; absent = it runs. */
  ended_at?: number | null;
  /** Its id. */
  id: string;
  /** The beginning of the input. */
  input: string;
  /** Id of the answer. */
  message_id: string;
  /** Which model, as `upstream/model`. */
  model?: string | null;
  parent?: ParentTurn | null;
  /** `running`, or how it ended. */
  status: string;
}

/** A turn that runs now. */
export interface TurnStarted {
  /** The conversation that it belongs to. */
  conversation_id?: string | null;
  /** Where its events are. */
  events_url: string;
  /** The message that it writes. */
  message_id: string;
  /** Which turn. */
  turn_id: string;
}

/** How turns went. */
export interface TurnsMetrics {
  /** From the beginning of a turn to its first content, in milliseconds. */
  first_token_ms: Spread;
  /**
   * What models wrote in a second of writing, in tokens as upstreams count them. Turns whose upstream counts
   * none are left out.
   */
  tokens_per_second: Spread;
  /** All that began in the time. */
  total: number;
}

/** What is to be different. What is not named stays. */
export interface UpdateConversation {
  /** The turn that a new one continues: another branch. */
  leaf_id?: string | null;
  /** Its title; empty = the first words of the first input again. */
  title?: string | null;
}

/** A form with one file in it. */
export interface UploadForm {
  /** The file. */
  file: Blob;
}

/** A model endpoint. */
export interface UpstreamInfo {
  /** Where it is, for whoever runs the server (scope `admin`). */
  address?: string | null;
  /** How it is spoken to. */
  dialect: string;
  /**
   * Whether it was connected while the server ran, and so can be forgotten; for whoever runs the server
   * (scope `admin`).
   */
  is_stored?: boolean | null;
  /** `present`, `missing`, or `not_needed`. */
  key: string;
  /**
   * Where a key that is present comes from: `environment`, which comes first, `stored` (when it was
   * connected), or `program`.
   */
  key_from?: string | null;
  /** The environment variable that should hold the key, for whoever runs the server (scope `admin`). */
  key_variable?: string | null;
  /** What is known of these: how much they read and write, and what they take. */
  model_facts: Record<string, unknown>;
  /** Models that agents of yours use there. */
  models: string[];
  /** The part before the `/` of `upstream/model`. */
  name: string;
}

/** Tokens, each only if it was told. */
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

/** What a parked turn waits for. All of it comes with another request of whoever asked for the turn. */
export type WaitsFor = "tool_results" | "approval";

/** Where the time of a turn went. */
export interface WaterfallInfo {
  /** From its beginning to the first content, in milliseconds. */
  first_content_ms?: number | null;
  /** Tool time that ran beside the model's stream and so cost nothing, in milliseconds. */
  saved_by_eager_ms: number;
  /** Without gaps; their sum is `wall_ms`. */
  segments: SegmentInfo[];
  /** `running`, or how it ended. */
  status: string;
  /** From its beginning to its end, or to now; in milliseconds. */
  wall_ms: number;
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
  /** How large that is. */
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
      /** How large that is. */
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
      /** How large that is. */
      bytes?: number;
      /** Where the upstream finds it by itself, in place of `data`. */
      url?: string;
    };

/** A stretch of time with one name. */
export interface Segment {
  kind: "first_token" | "thinking" | "text" | "arguments" | "approval_wait" | "tool" | "retry" | "engine";
  /** From 1. */
  step?: number;
  tool_id?: string;
  /** milliseconds since 1970 */
  start: number;
  /** How long, in milliseconds. */
  ms: number;
}

/** What a person sees about a failure. */
export interface Fault {
  /** A stable word. */
  code: string;
  /** What happened. */
  what: string;
  /** Why. */
  why: string;
  /** What to do. */
  remedy: string;
  /** Trying the same again may help. */
  retryable: boolean;
  /** HTTP status of the upstream, if it answered with one. */
  status?: number;
  /** How long to wait before the next try as the upstream said it, in milliseconds. */
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
  /** What the tool, the check or the person said. */
  message?: string;
  /** Of an unknown tool: the closest names. */
  closest?: string[];
  /** Name of the limit. */
  limit?: string;
  /** The time limit, in milliseconds. */
  limit_ms?: number;
}

/** The turn begins: always the first event. */
export interface Event_stream_start {
  type: "stream_start";
  /** Which turn. */
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
export interface Event_step_start {
  type: "step_start";
  /** Which turn. */
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
  /** Which of the fallbacks, from 1; absent = the first choice. */
  fallback?: number;
  tools_offered: string[];
}

/** The model call is over; its tools may still run. */
export interface Event_step_end {
  type: "step_end";
  /** Which turn. */
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
  segments?: Segment[];
}

/** A block opens. A `tool_call` block is opened by `tool_use` instead. */
export interface Event_block_start {
  type: "block_start";
  /** Which turn. */
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
  /** How large that is. */
  bytes?: number;
  what?: string;
  why?: string;
  remedy?: string;
  retryable?: boolean;
  /** HTTP status of the upstream, if it answered with one. */
  status?: number;
  /** How long to wait before the next try as the upstream said it, in milliseconds. */
  retry_after_ms?: number;
}

/** A text, thinking or audio block is complete. */
export interface Event_block_end {
  type: "block_end";
  /** Which turn. */
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
export interface Event_content_delta {
  type: "content_delta";
  /** Which turn. */
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

/** Reasoning, appended to the block. Empty = the model thinks and does not say what. */
export interface Event_thinking {
  type: "thinking";
  /** Which turn. */
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
export interface Event_citation {
  type: "citation";
  /** Which turn. */
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
export interface Event_tool_use {
  type: "tool_use";
  /** Which turn. */
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
export interface Event_tool_input_delta {
  type: "tool_input_delta";
  /** Which turn. */
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
export interface Event_tool_input_reset {
  type: "tool_input_reset";
  /** Which turn. */
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
export interface Event_tool_input {
  type: "tool_input";
  /** Which turn. */
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
export interface Event_approval_request {
  type: "approval_request";
  /** Which turn. */
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
export interface Event_approval_resolved {
  type: "approval_resolved";
  /** Which turn. */
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
  /** What is kept of the answer. */
  remembered?: unknown;
  answer?: "accept" | "decline" | "cancel";
  /** The values that were filled in. */
  content?: unknown;
}

/** A tool is no longer defined as it was offered. */
export interface Event_tool_redefined {
  type: "tool_redefined";
  /** Which turn. */
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
export interface Event_tool_start {
  type: "tool_start";
  /** Which turn. */
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
export interface Event_tool_progress {
  type: "tool_progress";
  /** Which turn. */
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

/** How the call ended: closes its block. Exactly one for each `tool_use`. */
export interface Event_tool_result {
  type: "tool_result";
  /** Which turn. */
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
  /** Whether the model is told. */
  seen_by_model?: boolean;
}

/** Sound, appended to the audio block. */
export interface Event_audio_delta {
  type: "audio_delta";
  /** Which turn. */
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
export interface Event_user_message {
  type: "user_message";
  /** Which turn. */
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
export interface Event_waiting {
  type: "waiting";
  /** Which turn. */
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
export interface Event_problem {
  type: "problem";
  /** Which turn. */
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
export interface Event_session_stats {
  type: "session_stats";
  /** Which turn. */
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
  /** Tool time beside the model's stream, in milliseconds. */
  saved_by_eager_ms: number;
  segments: Segment[];
}

/** The turn failed; right after the error block of the same content. */
export interface Event_error {
  type: "error";
  /** Which turn. */
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
  /** A stable word. */
  code: string;
  /** What happened. */
  what: string;
  /** Why. */
  why: string;
  /** What to do. */
  remedy: string;
  /** Trying the same again may help. */
  retryable: boolean;
  /** HTTP status of the upstream, if it answered with one. */
  status?: number;
  /** How long to wait before the next try as the upstream said it, in milliseconds. */
  retry_after_ms?: number;
}

/** Another process took the turn over. */
export interface Event_turn_resumed {
  type: "turn_resumed";
  /** Which turn. */
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
export interface Event_block_superseded {
  type: "block_superseded";
  /** Which turn. */
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
export interface Event_stream_end {
  type: "stream_end";
  /** Which turn. */
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
export interface Whole_snapshot {
  type: "snapshot";
  /** Which turn. */
  turn_id: string;
  /** The last event that is in it: the `id` of the SSE frame. The events behind it follow. */
  last_seq: number;
  message: Message;
}

/**
 * What this viewer has does not agree with the log: forget it, this is the message so far. It is in no log.
 */
export interface Whole_resync {
  type: "resync";
  /** Which turn. */
  turn_id: string;
  /** The last event that is in it: the `id` of the SSE frame. The events behind it follow. */
  last_seq: number;
  message: Message;
}

/** The log takes nothing now, so nothing can be shown. It is in no log and has no number. */
export interface Store_is_away {
  type: "waiting";
  /** Which turn. */
  turn_id: string;
  /** milliseconds since 1970 */
  timestamp: number;
  reason: "store";
  /** Since when. */
  why: string;
}

/** What a viewer of a turn sees: the `data` of a frame of `GET /v1/turns/{turn_id}/events`. */
export type Viewed = Event | Whole_snapshot | Whole_resync | Store_is_away;

/** One part of a message. */
export type Block =
  | {
      kind: "text";
      text: string;
      /** Whether more may come. */
      state: "open" | "closed";
      code?: string;
      citations?: unknown[];
    }
  | {
      kind: "thinking";
      text: string;
      /** Whether more may come. */
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
      /** Whether more may come. */
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
      /** How large that is. */
      bytes?: number;
    }
  | {
      kind: "notice";
      code: string;
      text: string;
    }
  | {
      kind: "error";
      /** A stable word. */
      code: string;
      /** What happened. */
      what: string;
      /** Why. */
      why: string;
      /** What to do. */
      remedy: string;
      /** Trying the same again may help. */
      retryable: boolean;
      /** HTTP status of the upstream, if it answered with one. */
      status?: number;
      /** How long to wait before the next try as the upstream said it, in milliseconds. */
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
  /** Whether the server lives. */
  "GET /healthz": {
    /** It does */
    response: Health;
  };
  /** How well things go, for Prometheus. */
  "GET /metrics": {
    /** The text format, version 0.0.4 */
    response: string;
  };
  /**
   * Whether the server takes new turns: something is read from the store and something written, at most once
   * a second.
   */
  "GET /readyz": {
    /** It does */
    response: Health;
  };
  /**
   * The same for a client that is configured with `/render/{render}/v1` as its address: the address says how
   * tools are shown,
   * unless the request or the model's name does.
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
  /**
   * The same for a client that is configured with `/render/{render}/v1` as its address: the address has
   * chosen already.
   */
  "GET /render/{render}/v1/models": {
    path: {
      /** `none`, `text`, `details`, `reasoning` or `owui_event` */
      render: string;
    };
    /** Agents by name, then models */
    response: ModelList;
  };
  /** List the fields of an agent, for a form: what each does, and what holds here where nothing is said. */
  "GET /v1/agent-fields": {
    query?: {
      /** A tag such as `en` or `zh-CN`; English for languages that there are no words in, or absent. */
      language?: string;
    };
    /** All of them */
    response: AgentFields;
  };
  /** List agents: those of the configuration first, each by name. */
  "GET /v1/agents": {
    /** All of them */
    response: Listed_AgentInfo;
  };
  /** Make an agent. Turns that begin from now on may name it. */
  "POST /v1/agents": {
    body: CreateAgent;
    /** It is there */
    response: AgentDetail;
  };
  /** An agent with its settings. */
  "GET /v1/agents/{agent}": {
    path: {
      /** Its name */
      agent: string;
    };
    /** All that it is */
    response: AgentDetail;
  };
  /** Put other settings in the place of an agent's. */
  "PUT /v1/agents/{agent}": {
    path: {
      /** Its name */
      agent: string;
    };
    body: ReplaceAgent;
    /** As it is now */
    response: AgentDetail;
  };
  /** Take an agent away. Turns that run keep it. */
  "DELETE /v1/agents/{agent}": {
    path: {
      /** Its name */
      agent: string;
    };
    /** It is gone */
    response: undefined;
  };
  /** Make a copy that can be changed, of any agent. */
  "POST /v1/agents/{agent}/duplicate": {
    path: {
      /** What is copied */
      agent: string;
    };
    body: DuplicateAgent;
    /** The copy is there */
    response: AgentDetail;
  };
  /**
   * See what settings of an agent would come to, checked as if they were saved.
   *
   * Nothing is saved, and nothing runs. Rules are those of a turn, with what you have said before and always
   * holds.
   */
  "POST /v1/agents/{agent}/preview": {
    path: {
      /** Its name */
      agent: string;
    };
    body: PreviewAgent;
    /** What they would come to */
    response: AgentPreview;
  };
  /** What an agent would be told now, and what it costs in tokens. */
  "GET /v1/agents/{agent}/prompt": {
    path: {
      /** Its name */
      agent: string;
    };
    query?: {
      /** `auto`, `native` or `text`; absent = as the agent says. */
      mode?: "auto" | "native" | "text";
      /** `vcp` or `xml`; absent = as the agent says. Naming one means text. */
      protocol?: "vcp" | "xml";
    };
    /** Prompt, tools and tokens */
    response: PromptPreview;
  };
  /** Switch tools of an agent on and off, by name, group or source. */
  "PATCH /v1/agents/{agent}/toggles": {
    path: {
      /** Its name */
      agent: string;
    };
    body: ChangeToggles;
    /** As it is now */
    response: AgentDetail;
  };
  /** The tools as an agent finds them: which it is offered, and why not the others. */
  "GET /v1/agents/{agent}/tools": {
    path: {
      /** Its name */
      agent: string;
    };
    query?: {
      /** `auto`, `native` or `text`; absent = as the agent says. */
      mode?: "auto" | "native" | "text";
      /** `vcp` or `xml`; absent = as the agent says. Naming one means text. */
      protocol?: "vcp" | "xml";
    };
    /** Every tool by name */
    response: Listed_ToolInfo;
  };
  /** Answer a chat, as OpenAI Chat Completions. Streamed (`text/event-stream`) if `stream` is true. */
  "POST /v1/chat/completions": {
    /**
     * As OpenAI's; `model` is an agent or `upstream/model`. What only this server knows is in `throughline`.
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
   * They are offered in turns of the same user that begin from now on. A call is offered by its `tool_start`
   * event, which
   * names the client; answer it with `POST /v1/turns/{turn_id}/calls/{tool_id}/result`.
   */
  "PUT /v1/clients/{client_id}/tools": {
    path: {
      /** An id of the client's own choice */
      client_id: string;
    };
    body: DeclareTools;
    /** They are offered from now on */
    response: Declared;
  };
  /** Complete a text, as the model's upstream does it. Streamed if it streams. */
  "POST /v1/completions": {
    /** As OpenAI's; `model` is `upstream/model`, or an agent, whose model is meant. */
    body: Record<string, unknown>;
    /** What the upstream answers */
    response: Record<string, unknown>;
  };
  /** List conversations, those with the latest events first. */
  "GET /v1/conversations": {
    query?: {
      /** Only those with this text in title, input or answer, whatever its case. */
      q?: string;
      /** `next` of the page before. */
      cursor?: string;
      /** Most rows, 1 to 200. Default 50. */
      limit?: number;
    };
    /** A part of the list */
    response: Listed_Conversation;
  };
  /**
   * Make a conversation without turns.
   *
   * Not needed before a first turn: `POST /v1/turns` makes one too.
   */
  "POST /v1/conversations": {
    body: CreateConversation;
    /** It is there */
    response: Conversation;
  };
  /**
   * Read a conversation in: one that was exported as JSON Lines, or a list of OpenAI messages.
   *
   * Everything gets new ids. Nothing is fetched from anywhere, and no model is asked.
   */
  "POST /v1/conversations/import": {
    /** A file of `export`, or `[{"role": "user", "content": "…"}, …]` */
    body:
      | unknown[]
      | {
          messages: unknown[];
        }
      | string;
    /** It is there */
    response: Conversation;
  };
  /** A conversation with the tree of its turns. */
  "GET /v1/conversations/{conversation_id}": {
    path: {
      /** Which conversation */
      conversation_id: string;
    };
    /** All its turns in short */
    response: ConversationTree;
  };
  /** Delete a conversation with its turns, their logs, calls, and the files that nothing else uses. */
  "DELETE /v1/conversations/{conversation_id}": {
    path: {
      /** Which conversation */
      conversation_id: string;
    };
    /** It is gone */
    response: undefined;
  };
  /** Rename a conversation, or go to another branch of it. */
  "PATCH /v1/conversations/{conversation_id}": {
    path: {
      /** Which conversation */
      conversation_id: string;
    };
    body: UpdateConversation;
    /** As it is now */
    response: Conversation;
  };
  /** Write a conversation down: everything as JSON Lines, or one branch as Markdown. */
  "GET /v1/conversations/{conversation_id}/export": {
    path: {
      /** Which conversation */
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
  /** Go on in another way from any turn, or any event of one, as a conversation of its own. */
  "POST /v1/conversations/{conversation_id}/fork": {
    path: {
      /** Which conversation */
      conversation_id: string;
    };
    body: Fork;
    /** A new conversation with copies of the turns up to there */
    response: Conversation;
  };
  /** The messages of one branch, each the fold of its turn's events. */
  "GET /v1/conversations/{conversation_id}/messages": {
    path: {
      /** Which conversation */
      conversation_id: string;
    };
    query?: {
      /** The last turn of the branch; absent = the conversation's leaf. */
      leaf?: string;
      /** Only what stands in front of this turn: `before` of the part behind it. */
      before?: string;
      /** Most messages, 1 to 200. Default 50, the newest. */
      limit?: number;
    };
    /** A part of the branch, oldest first */
    response: Branch;
  };
  /**
   * Decode a recorded reply of an upstream: what it says, what is wrong with it and where, and the events
   * that a viewer
   * would have seen.
   *
   * The body is the recording, streamed or whole, or a form with it. Nothing of it is kept or run.
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
      /** Whether `<think>` in the text is taken for thinking, as turns do. Default true. */
      think?: boolean;
      /** In which language findings are told: `en` or `zh-CN`. Default `en`. */
      language?: string;
    };
    body?: Blob | Uint8Array<ArrayBuffer> | FormData;
    /** What it holds */
    response: Decoded;
  };
  /** Embed texts, as the model's upstream does it. */
  "POST /v1/embeddings": {
    /** As OpenAI's; `model` is `upstream/model`. */
    body: Record<string, unknown>;
    /** What the upstream answers */
    response: Record<string, unknown>;
  };
  /** List files, newest first. */
  "GET /v1/files": {
    query?: {
      /** `next` of the page before. */
      cursor?: string;
      /** Most rows, 1 to 200. Default 50. */
      limit?: number;
    };
    /** A part of the list */
    response: Listed_FileInfo;
  };
  /**
   * Upload a file: a form with one file in it, or the file itself as the body.
   *
   * What it is, is found out from its content. A declared type that the content contradicts is refused.
   */
  "POST /v1/files": {
    query?: {
      /** Its name. Not needed for `multipart/form-data`, which brings one along. */
      name?: string;
    };
    body: Blob | Uint8Array<ArrayBuffer> | FormData;
    /** It is there */
    response: FileInfo;
  };
  /** What is known of a file. */
  "GET /v1/files/{file_id}": {
    path: {
      /** Which file */
      file_id: string;
    };
    /** All but its content */
    response: FileInfo;
  };
  /**
   * Delete a file, used or not: with its content, wherever a conversation speaks of it. Models are told that
   * it is gone.
   *
   * Only files of at most `media_inline_bytes_max` stand in the conversation itself, and stay there.
   */
  "DELETE /v1/files/{file_id}": {
    path: {
      /** Which file */
      file_id: string;
    };
    /** It is gone */
    response: undefined;
  };
  /** The content of a file, always as an attachment. */
  "GET /v1/files/{file_id}/content": {
    path: {
      /** Which file */
      file_id: string;
    };
    /** Its bytes, as what they are */
    response: Blob;
  };
  /** List tool calls, newest first. */
  "GET /v1/history/calls": {
    query?: {
      /** Of this tool. */
      tool?: string;
      /** Of tools from this source. */
      source?: string;
      /** With this status, or with one of several, a comma between. */
      status?: string;
      /** Of this conversation. */
      conversation_id?: string;
      /** Of this turn. */
      turn_id?: string;
      /** Begun then or later, in milliseconds since 1970. */
      from?: number;
      /** Begun before, in milliseconds since 1970. */
      until?: number;
      /** That ran longer than so many milliseconds. */
      longer_than_ms?: number;
      /** With this text in name, arguments, summary or error, whatever its case. */
      q?: string;
      /** `next` of the page before. */
      cursor?: string;
      /** Most rows, 1 to 200. Default 50. */
      limit?: number;
    };
    /** A part of the list */
    response: Listed_CallInfo;
  };
  /** A call with its arguments, output and everything that happened to it. */
  "GET /v1/history/calls/{tool_id}": {
    path: {
      /** Which call */
      tool_id: string;
    };
    /** All that is known of it */
    response: CallDetail;
  };
  /** Count tool calls by status and tool. */
  "GET /v1/history/counts": {
    query?: {
      /** Of this tool. */
      tool?: string;
      /** Of tools from this source. */
      source?: string;
      /** With this status, or with one of several, a comma between. */
      status?: string;
      /** Of this conversation. */
      conversation_id?: string;
      /** Of this turn. */
      turn_id?: string;
      /** Begun then or later, in milliseconds since 1970. */
      from?: number;
      /** Begun before, in milliseconds since 1970. */
      until?: number;
      /** That ran longer than so many milliseconds. */
      longer_than_ms?: number;
      /** With this text in name, arguments, summary or error, whatever its case. */
      q?: string;
      /** `next` of the page before. */
      cursor?: string;
      /** Most rows, 1 to 200. Default 50. */
      limit?: number;
    };
    /** How many there are */
    response: CountsInfo;
  };
  /** Write tool calls down, newest first: JSON Lines or CSV, at most 100,000. */
  "GET /v1/history/export": {
    query?: {
      /** `jsonl` or `csv`. */
      format?: "jsonl" | "csv";
      /** Of this tool. */
      tool?: string;
      /** Of tools from this source. */
      source?: string;
      /** With this status, or with one of several, a comma between. */
      status?: string;
      /** Of this conversation. */
      conversation_id?: string;
      /** Of this turn. */
      turn_id?: string;
      /** Begun then or later, in milliseconds since 1970. */
      from?: number;
      /** Begun before, in milliseconds since 1970. */
      until?: number;
      /** That ran longer than so many milliseconds. */
      longer_than_ms?: number;
      /** With this text in name, arguments, summary or error, whatever its case. */
      q?: string;
    };
    /** The file */
    response: string;
  };
  /** First token, speed, tools and errors of a time, with series for charts. */
  "GET /v1/history/metrics": {
    query?: {
      /** Begun then or later, in milliseconds since 1970. Default: 24 hours before `until`. */
      from?: number;
      /** Begun before, in milliseconds since 1970. Default: now. */
      until?: number;
      /** Into how many parts the time is cut, 1 to 200. Default 48. */
      buckets?: number;
    };
    /** Figures of the asker's own turns and calls */
    response: MetricsInfo;
  };
  /** Keys, without their secrets. */
  "GET /v1/keys": {
    /** All of them, revoked ones too */
    response: KeyList;
  };
  /** Make a key. The answer is the only place where it can be seen. */
  "POST /v1/keys": {
    body: KeyWanted;
    /** It can be used */
    response: KeyMade;
  };
  /** Make a key worthless. Its streams and sockets end within a second. */
  "DELETE /v1/keys/{key_id}": {
    path: {
      /** Its id */
      key_id: string;
    };
    /** It is worth nothing any more */
    response: undefined;
  };
  /** The agents and the models that can be asked. */
  "GET /v1/models": {
    /** Agents by name, then models */
    response: ModelList;
  };
  /** One of them. Models have slashes in their names. */
  "GET /v1/models/{id}": {
    path: {
      /** An agent, or `upstream/model` */
      id: string;
    };
    /** There is one */
    response: Model;
  };
  /** This document. Needs no key: it says what there is, and nothing of anybody. */
  "GET /v1/openapi.json": {
    /** OpenAPI 3.1 */
    response: Record<string, unknown>;
  };
  /** Look for calls in a reply, and say what would become of each. Runs nothing. */
  "POST /v1/parse": {
    body: ParseText;
    /** What it holds */
    response: Parsed;
  };
  /**
   * What the tools of an agent look like and cost in each way of telling them: native, and every text
   * protocol.
   */
  "GET /v1/prompts": {
    query?: {
      /** As this agent finds them; absent = the server's own agent. */
      agent?: string;
    };
    /** One for each way */
    response: Listed_PromptPreview;
  };
  /** Look at what the link beside a question in a chat asks. Needs no key. */
  "POST /v1/question-links": {
    body: QuestionLink;
    /** It is open */
    response: LinkedQuestions;
  };
  /**
   * Answer what the link beside a question in a chat asks, once. The chat goes on with its next message.
   * Needs no key.
   */
  "POST /v1/question-links/answer": {
    body: AnswerToLink;
    /** It is the answer */
    response: AnsweredLink;
  };
  /** List answers that are remembered, oldest first. */
  "GET /v1/remembered": {
    query?: {
      /** Those that hold in this conversation too; absent = only those that always hold. */
      conversation_id?: string;
      /** `true`: those of every conversation too. */
      everywhere?: boolean;
      /** `next` of the page before. */
      cursor?: string;
      /** Most rows, 1 to 200. Default 200. */
      limit?: number;
    };
    /** A part of the list */
    response: Listed_RememberedAnswer;
  };
  /** Take an answer back: the next such call asks again. */
  "DELETE /v1/remembered/{number}": {
    path: {
      /** Which answer */
      number: number;
    };
    /** It is forgotten */
    response: undefined;
  };
  /** Look for a text in titles, inputs and answers. */
  "GET /v1/search": {
    query: {
      /** The text. `%`, `_` and `*` mean themselves. */
      q: string;
      /** `next` of the page before. */
      cursor?: string;
      /** Most rows, 1 to 200. Default 50. */
      limit?: number;
    };
    /** Places with what stands around them, newest first */
    response: Listed_Found;
  };
  /**
   * Get a key for a browser, once, for the link that `throughline serve` prints at its start. Needs no key.
   */
  "POST /v1/sign-in": {
    body: SignIn;
    /** It can be used */
    response: KeyMade;
  };
  /** Report frames that a page has drawn late. */
  "POST /v1/telemetry/frames": {
    body: FramesSeen;
    /** Counted, as far as it can be believed */
    response: undefined;
  };
  /** A ticket in place of the key, for browsers' `EventSource` and `WebSocket`, which cannot send one. */
  "POST /v1/tickets": {
    /** It is good once */
    response: TicketMade;
  };
  /** List tools with where they come from, and what is wrong with their sources. */
  "GET /v1/tools": {
    query?: {
      /** As this agent finds them; absent = the server's own agent. */
      agent?: string;
    };
    /** All of them */
    response: Tools;
  };
  /** One tool with its definition. */
  "GET /v1/tools/{tool}": {
    path: {
      /** Its name: `group.method` */
      tool: string;
    };
    /** All that it is */
    response: ToolInfo;
  };
  /**
   * Run a tool by hand, under the rules of an agent. Nothing of it goes into a conversation.
   *
   * What may change something needs `confirm: true`. What a rule denies stays denied. When the request is
   * given up, the tool
   * is stopped.
   */
  "POST /v1/tools/{tool}/call": {
    path: {
      /** Its name: `group.method` */
      tool: string;
    };
    body: CallTool;
    /** It ran, and this is how it ended */
    response: ToolCalled;
  };
  /** List the turns that run on this server or are parked here. The list is whole; the oldest is first. */
  "GET /v1/turns": {
    /** All that have not ended */
    response: Listed_OpenTurnInfo;
  };
  /**
   * Start a turn.
   *
   * With `Accept: text/event-stream` the answer is the turn's event stream itself, and `Location` names the
   * turn. The same
   * `Idempotency-Key` with the same body gives the same turn, for 24 hours.
   */
  "POST /v1/turns": {
    body: StartTurn;
    /** Its events, if they were asked for at once; or the turn of an earlier request with this key */
    response: TurnStarted;
  };
  /**
   * A turn as it stands now. Its message and the events behind `last_seq` add up to what all events add up
   * to.
   */
  "GET /v1/turns/{turn_id}": {
    path: {
      /** Which turn */
      turn_id: string;
    };
    /** As it stands */
    response: Snapshot;
  };
  /**
   * Answer a question, or `all` that are open.
   *
   * The first answer counts; the same one again is as good. Of a cancel and an answer that race one wins, and
   * everybody is
   * told the same.
   */
  "POST /v1/turns/{turn_id}/approvals/{approval_id}": {
    path: {
      /** Which turn */
      turn_id: string;
      /** Which question, or `all` */
      approval_id: string;
    };
    body: Approve;
    /** It is the answer */
    response: Answered;
  };
  /** Stop one call; the turn goes on. */
  "POST /v1/turns/{turn_id}/calls/{tool_id}/cancel": {
    path: {
      /** Which turn */
      turn_id: string;
      /** Which call */
      tool_id: string;
    };
    /** It ends, or has ended before; its `tool_result` tells how */
    response: CallTold;
  };
  /** Tell how a call ended that you were asked to run. The first answer in time counts. */
  "POST /v1/turns/{turn_id}/calls/{tool_id}/result": {
    path: {
      /** Which turn */
      turn_id: string;
      /** Which call */
      tool_id: string;
    };
    body: CallResult;
    /** It is the call's outcome */
    response: CallTold;
  };
  /** Stop a turn. What is finished stays; a second time: without waiting for tools to say how they ended. */
  "POST /v1/turns/{turn_id}/cancel": {
    path: {
      /** Which turn */
      turn_id: string;
    };
    /** It will stop, or has ended before; its events tell which */
    response: undefined;
  };
  /** Follow a turn, from any place in it. */
  "GET /v1/turns/{turn_id}/events": {
    path: {
      /** Which turn */
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
    /** Its events, to the last one */
    response: ReadableStream<Uint8Array> | undefined;
  };
  /** What waits to be taken in. */
  "GET /v1/turns/{turn_id}/messages": {
    path: {
      /** Which turn */
      turn_id: string;
    };
    /** Oldest first */
    response: QueuedMessages;
  };
  /** Say something while the turn runs. */
  "POST /v1/turns/{turn_id}/messages": {
    path: {
      /** Which turn */
      turn_id: string;
    };
    body: Say;
    /** It waits for its time; a `user_message` event tells when it is taken in */
    response: SaidSo;
  };
  /** Take a message back that was not taken in yet. */
  "DELETE /v1/turns/{turn_id}/messages/{message_id}": {
    path: {
      /** Which turn */
      turn_id: string;
      /** Which message */
      message_id: string;
    };
    /** It will not be taken in; these are its parts */
    response: Record<string, unknown>;
  };
  /** Where the wall time of a turn went, to the millisecond. */
  "GET /v1/turns/{turn_id}/waterfall": {
    path: {
      /** Which turn */
      turn_id: string;
    };
    /** Stretches of time without gaps */
    response: WaterfallInfo;
  };
  /** List upstreams: where models are, and whether a key is there. Never the key. */
  "GET /v1/upstreams": {
    /** All of them, by name */
    response: Listed_UpstreamInfo;
  };
  /**
   * List the upstreams that are known by name, with what it takes to connect each, and which of those on this
   * machine answer.
   */
  "GET /v1/upstreams/known": {
    /** All of them */
    response: Listed_KnownUpstream;
  };
  /**
   * Connect an upstream: it is asked which models it has, and a model for a word if one is named; then its
   * key is kept, and
   * turns that begin from now on can use it. A key is in no answer.
   */
  "POST /v1/upstreams/{upstream}/connect": {
    path: {
      /** A name of `/v1/upstreams/known`, one of the configuration, or, with `base_url`, a new one */
      upstream: string;
    };
    body: Connect;
    /** It can be used */
    response: ConnectedUpstream;
  };
  /**
   * Forget the key that was stored for an upstream, and what was connected with it. Turns that run keep it.
   */
  "DELETE /v1/upstreams/{upstream}/key": {
    path: {
      /** Its name */
      upstream: string;
    };
    /** It is forgotten */
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
