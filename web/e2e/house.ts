// Server fixture for a file of tests, with users whose browsers must log no errors.

import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { closeBrowser, type Kind, Visitor } from "./browser.ts";
import type { Server } from "./server.ts";

export class House {
  readonly #visitors: Visitor[] = [];
  readonly #servers: Server[] = [];
  #server: Server | undefined;

  /** Registers the hooks of the calling file; without `start`, each test starts a server of its own. */
  static of(start?: () => Promise<Server>): House {
    const house = new House();
    beforeAll(async () => {
      house.#server = await start?.();
    });
    afterEach(() => house.#leave());
    afterAll(async () => {
      await closeBrowser();
      await house.#server?.stop();
    });
    return house;
  }

  get server(): Server {
    if (this.#server === undefined) throw new Error("it starts before the first test, if the file has one");
    return this.#server;
  }

  /** A server that lives as long as the test. */
  async own(start: Promise<Server>): Promise<Server> {
    const server = await start;
    this.#servers.push(server);
    return server;
  }

  /** A user without a key, at no page yet. */
  async stranger(kind: Kind = {}): Promise<Visitor> {
    const somebody = await Visitor.come(kind);
    this.#visitors.push(somebody);
    return somebody;
  }

  /** A user with a key. */
  async visitor(kind: Kind = {}, server = this.server, path = "/"): Promise<Visitor> {
    const somebody = await this.stranger(kind);
    await somebody.page.goto(`${server.url}${path}#token=${await server.key()}`);
    await somebody.page.locator("main header, main h1, main h2").first().waitFor();
    return somebody;
  }

  async #leave(): Promise<void> {
    const visitors = this.#visitors.splice(0);
    const servers = this.#servers.splice(0);
    for (const visitor of visitors) await visitor.leave();
    for (const server of servers) await server.stop();
    for (const { complaints, hosts } of visitors) {
      expect(complaints, "scripts and the policy have nothing to complain of").toEqual([]);
      const others = [...hosts].filter((host) => host !== "" && !host.startsWith("127.0.0.1"));
      expect(others, "other hosts").toEqual([]);
    }
  }
}
