// `throughline serve` in a temporary folder, with the demo model or one with scripted replies.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Throughline } from "../client/src/index.ts";

const PROGRAM = process.env.THROUGHLINE_BIN;
/** An address without a server. */
const NOWHERE = "http://127.0.0.1:9/v1";

/** A rule of the scripted model, see docs/mock.md. */
export interface Rule {
  when?: Record<string, unknown>;
  times?: number;
  /** Moves, or a table with them: `then` of the scenario. */
  does: unknown;
}

export class Server {
  readonly #folder = mkdtempSync(join(tmpdir(), "throughline-page-"));
  #child: ChildProcess | undefined;
  readonly #mocks: ChildProcess[] = [];
  #model = ["--model", "demo", "--demo-tools"];
  #port = 0;
  #key: Promise<string> | undefined;
  /** Environment of the server, without the provider keys of this machine. */
  readonly #variables: Record<string, string> = Object.fromEntries(
    ["OLLAMA", "LMSTUDIO", "LLAMA_CPP", "VLLM", "GCLI2API"].map((name) => [
      `THROUGHLINE_BASE_URL_${name}`,
      NOWHERE,
    ]),
  );
  /** Address of the upstream whose replies and keys are scripted. */
  upstream = "";
  /** The last printed sign-in link. */
  link = "";

  /** `script`: scenario of `throughline mock`. */
  static async start(script?: string): Promise<Server> {
    const server = new Server();
    if (script !== undefined) await server.#mocked(script);
    await server.start();
    return server;
  }

  /** With the demo model; `DeepSeek` is scripted, including its key, and LM Studio runs locally. */
  static async startConnectable(script: string): Promise<Server> {
    const server = new Server();
    const [base, local] = [await server.#mock(script), await server.#mock()];
    server.upstream = base;
    Object.assign(server.#variables, {
      THROUGHLINE_BASE_URL_DEEPSEEK: base,
      THROUGHLINE_BASE_URL_GROQ: NOWHERE,
      THROUGHLINE_BASE_URL_LMSTUDIO: local,
    });
    await server.start();
    return server;
  }

  /** With a model that follows these rules; `tools`: further sections of `throughline.toml`. */
  static async scripted(rules: readonly Rule[], tools = ""): Promise<Server> {
    const server = new Server();
    const url = await server.#mock(JSON.stringify({ rules: rules.map(written) }));
    const agent = `[upstreams.mock]
dialect = "openai-chat"
base_url = "${url}"
[agents.default]
model = "mock/mock"
tool_call = { enabled = true }
`;
    server.#configure(agent + tools);
    server.#model.push("--demo-tools");
    await server.start();
    return server;
  }

  /** With two upstreams, `one` and `two`, each with its own rules; `agents`: the rest of `throughline.toml`. */
  static async withUpstreams(one: readonly Rule[], two: readonly Rule[], agents: string): Promise<Server> {
    const server = new Server();
    const sections: string[] = [];
    for (const [name, rules] of Object.entries({ one, two })) {
      const url = await server.#mock(JSON.stringify({ rules: rules.map(written) }), name);
      sections.push(`[upstreams.${name}]\ndialect = "openai-chat"\nbase_url = "${url}"\n`);
    }
    server.#configure(sections.join("") + agents);
    await server.start();
    return server;
  }

  /** With this `throughline.toml`. */
  static async configured(configuration: string): Promise<Server> {
    const server = new Server();
    server.#configure(configuration);
    await server.start();
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Starts the server; a restart uses the same port. */
  async start(): Promise<void> {
    const words = ["serve", "--listen", `127.0.0.1:${this.#port}`, ...this.#model];
    const started = await this.#spawn(words, /http:\S+#sign-in=\S+(?=[\s\S]*\/docs\n)/);
    this.#child = started.child;
    this.link = started.found;
    this.#port = Number(new URL(this.link).port);
  }

  #configure(configuration: string): void {
    const file = join(this.#folder, "throughline.toml");
    writeFileSync(file, configuration);
    this.#model = ["--config", file];
  }

  /** A key with all scopes, from the printed link, which works once. */
  async key(): Promise<string> {
    const ticket = this.link.split("#sign-in=")[1] ?? "";
    const stranger = new Throughline({ baseUrl: this.url });
    this.#key ??= stranger.call("POST /v1/sign-in", { body: { ticket } }).then(({ key }) => key);
    return await this.#key;
  }

  /** A client with that key, without a browser. */
  async client(): Promise<Throughline> {
    return new Throughline({ baseUrl: this.url, key: await this.key() });
  }

  /** Starts a scripted model, or the demo model; returns its address. */
  async #mock(script?: string, name = "script"): Promise<string> {
    const file = join(this.#folder, `${name}.toml`);
    if (script !== undefined) writeFileSync(file, script);
    const words = script === undefined ? ["mock"] : ["mock", "--script", file];
    const { child, found } = await this.#spawn(words, /http:\S+\/v1(?=\n)/);
    this.#mocks.push(child);
    return found;
  }

  async #mocked(script: string): Promise<void> {
    const found = await this.#mock(script);
    this.#model = ["--base-url", found, "--api", "openai-chat", "--model", "mock", "--demo-tools"];
  }

  /** Starts a program and waits for a pattern in its output. */
  async #spawn(words: string[], awaited: RegExp): Promise<{ child: ChildProcess; found: string }> {
    if (PROGRAM === undefined)
      throw new Error("THROUGHLINE_BIN names no program: cargo xtask test --only page");
    const env = {
      PATH: process.env.PATH,
      HOME: this.#folder,
      LC_ALL: "C.UTF-8",
      THROUGHLINE_DATA: join(this.#folder, "data"),
      ...this.#variables,
    };
    const child = spawn(PROGRAM, words, { cwd: this.#folder, env, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    const found = await new Promise<string>((resolve, reject) => {
      const hear = (bytes: Buffer): void => {
        output += bytes.toString();
        const match = awaited.exec(output)?.[0];
        if (match !== undefined) resolve(match);
      };
      child.stdout?.on("data", hear);
      child.stderr?.on("data", hear);
      child.once("exit", (code) => reject(new Error(`${words[0]} ended with ${code}: ${output}`)));
    });
    return { child, found };
  }

  /** Kills the process, like a crash. */
  async kill(): Promise<void> {
    await killed(this.#child);
  }

  /** Stops the server and deletes its data. */
  async stop(): Promise<void> {
    await killed(this.#child);
    for (const mock of this.#mocks) await killed(mock);
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** The rule in the format of a scenario. */
function written({ does, ...conditions }: Rule): Record<string, unknown> {
  // biome-ignore lint/suspicious/noThenProperty: the scenario's own word
  return Object.fromEntries([...Object.entries(conditions), ["then", does]]);
}

async function killed(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await ended;
}
