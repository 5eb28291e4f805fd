// A gate that a model or a tool of a test waits for, so that tests do not depend on the speed of the machine.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export class Gate {
  readonly #folder = mkdtempSync(join(tmpdir(), "throughline-gate-"));
  /** Exists while the gate is open. */
  readonly #file = join(this.#folder, "open");

  constructor() {
    process.once("exit", () => rmSync(this.#folder, { recursive: true, force: true }));
  }

  open(): void {
    writeFileSync(this.#file, "");
  }

  close(): void {
    rmSync(this.#file, { force: true });
  }

  /** A move of the mock model that waits for the gate. */
  get move(): object {
    return { wait_for: this.#file };
  }

  /** A command that waits for the gate, then prints this. */
  command(printed: string): string[] {
    return ["sh", "-c", `until [ -e ${this.#file} ]; do sleep 0.05; done; echo ${printed}`];
  }
}
