// Large values: as a table and a tree with a search, with only visible rows in the DOM.

import { expect, test } from "vitest";
import { Server } from "../server.ts";
import { ServerFixture } from "../server-fixture.ts";

const ROWS = 12_000;
/** About 2 MB. */
const PRINTS = `BEGIN{{printf "["; for(i=0;i<${ROWS};i++) printf "%s{{\\"id\\":%d,\\"name\\":\\"row %05d of the list\\",\\"city\\":\\"Chengdu\\",\\"note\\":\\"${"x".repeat(100)}\\"}}", (i?",":""), i, i; print "]"}}`;
const TOOLS = `
[limits.turn]
output_bytes_max = 4_000_000

[commands."data.big"]
description = "Many rows"
argv = ["awk", ${JSON.stringify(PRINTS)}]
effect = "read"
input = "none"
parameters = '''{"type": "object", "properties": {"places": {"type": "array"}}}'''
`;
const ROWS_LARGE = Array.from({ length: 600 }, (_, at) => ({ place: `place ${at}`, at }));

const fixture = ServerFixture.of(() =>
  Server.scripted(
    [
      {
        when: { has_result: false },
        does: [{ call: { name: "data_big", arguments: { places: ROWS_LARGE } } }],
      },
      { when: {}, does: [{ say: "That is all." }] },
    ],
    TOOLS,
  ),
);

test("2 MB of JSON are a searchable table and tree with few rows in the DOM", async () => {
  const user = await fixture.user();
  const { page } = user;
  await user.send("Show me all of it");
  await page.locator(".part[data-kind=text]", { hasText: "That is all." }).waitFor();
  await page.locator(".card-head").first().click();
  const output = page
    .locator(".card-body section")
    .filter({ has: page.getByRole("heading", { name: "Output" }) });

  const table = output.locator("table.large");
  await expect.poll(() => table.getAttribute("aria-rowcount")).toBe(String(ROWS + 1));
  await expect.poll(() => table.locator("tr").count()).toBeLessThan(100);
  const search = output.getByRole("searchbox");
  await search.fill("row 11987");
  await output.getByText("1 of 12,000 rows").waitFor();
  await expect.poll(() => table.locator("tbody tr").first().textContent()).toContain("row 11987 of the list");
  await user.picture("large-table");

  await output.getByRole("button", { name: "Tree" }).click();
  await search.fill("");
  const tree = output.getByRole("tree");
  await output.getByText("12,001 lines").waitFor();
  await expect.poll(() => tree.getByRole("treeitem").count()).toBeLessThan(100);
  await tree.focus();
  await page.keyboard.press("End");
  await tree.getByText("11999: ").waitFor();
  await page.keyboard.press("ArrowRight");
  await output.getByText("12,005 lines").waitFor();
  await search.fill("row 00042");
  await output.getByText("1 found").waitFor();
  await expect.poll(() => tree.getByRole("treeitem").count()).toBe(3);
  await user.picture("large-tree");
  expect(await user.violations()).toEqual([]);
});

test("large arguments are shown like outputs", async () => {
  const user = await fixture.user();
  const { page } = user;
  await user.send("Once more");
  await page.locator(".part[data-kind=text]", { hasText: "That is all." }).waitFor();
  await page.locator(".card-head").first().click();
  const given = page
    .locator(".card-body section")
    .filter({ has: page.getByRole("heading", { name: "Arguments" }) });
  const tree = given.getByRole("tree");
  await tree.getByText("places: ").click();
  await given.getByText("602 lines").waitFor();
  await given.getByRole("searchbox").fill("place 599");
  await given.getByText("1 found").waitFor();
  await given.getByRole("button", { name: "Raw" }).click();
  await given.locator("pre").getByText("place 599").waitFor();
});
