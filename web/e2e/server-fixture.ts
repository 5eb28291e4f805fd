// Server fixture for a file of tests, with users whose browsers must log no errors.

import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { type BrowserOptions, BrowserUser, closeBrowser } from "./browser.ts";
import type { Server } from "./server.ts";

export class ServerFixture {
  readonly #users: BrowserUser[] = [];
  readonly #servers: Server[] = [];
  #server: Server | undefined;

  /** Registers the hooks of the calling file; without `start`, each test starts a server of its own. */
  static of(start?: () => Promise<Server>): ServerFixture {
    const fixture = new ServerFixture();
    beforeAll(async () => {
      fixture.#server = await start?.();
    });
    afterEach(() => fixture.#closeAll());
    afterAll(async () => {
      await closeBrowser();
      await fixture.#server?.stop();
    });
    return fixture;
  }

  get server(): Server {
    if (this.#server === undefined)
      throw new Error("the server starts before the first test, if the file has one");
    return this.#server;
  }

  /** A server that lives as long as the test. */
  async ownServer(start: Promise<Server>): Promise<Server> {
    const server = await start;
    this.#servers.push(server);
    return server;
  }

  /** A user without a key, at no page yet. */
  async anonymous(options: BrowserOptions = {}): Promise<BrowserUser> {
    const user = await BrowserUser.open(options);
    this.#users.push(user);
    return user;
  }

  /** A user with a key. */
  async user(options: BrowserOptions = {}, server = this.server, path = "/"): Promise<BrowserUser> {
    const user = await this.anonymous(options);
    await user.page.goto(`${server.url}${path}#token=${await server.key()}`);
    await user.page.locator("main header, main h1, main h2").first().waitFor();
    return user;
  }

  async #closeAll(): Promise<void> {
    const users = this.#users.splice(0);
    const servers = this.#servers.splice(0);
    for (const user of users) await user.close();
    for (const server of servers) await server.stop();
    for (const { errors, hosts } of users) {
      expect(errors, "no errors of scripts or policy").toEqual([]);
      const others = [...hosts].filter((host) => host !== "" && !host.startsWith("127.0.0.1"));
      expect(others, "other hosts").toEqual([]);
    }
  }
}
