// Files in the composer, and the text that models get of them.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import type { BrowserOptions, BrowserUser } from "../browser.ts";
import { Server } from "../server.ts";
import { ServerFixture } from "../server-fixture.ts";

/** A model that reports what it received. */
const fixture = ServerFixture.of(() =>
  Server.scripted([
    { when: { contains: "[page 2]\nThe answer is 42" }, does: [{ say: "I read the PDF." }] },
    { when: { contains: '<file name="sales.csv">\nmonth,total' }, does: [{ say: "I read the table." }] },
    { when: { has_image: true }, does: [{ say: "I see a picture." }] },
    { does: [{ say: "I was given no file." }] },
  ]),
);

interface Given {
  name: string;
  mimeType: string;
  buffer: Buffer;
}

const given = (name: string, mimeType: string, content: string | Buffer): Given => ({
  name,
  mimeType,
  buffer: Buffer.from(content as string),
});

const TABLE = given("sales.csv", "text/csv", "month,total\r\nMay,7\r\n");
const CODE = given("main.rs", "", 'fn main() {\n    println!("hi");\n}\n');
const ARCHIVE = given("report.docx", "", Buffer.from([0x50, 0x4b, 3, 4, 20, 0, 6, 0]));

/** A PDF with a page per text; an empty one is a scanned page. */
function pdf(name: string, ...texts: string[]): Given {
  const objects = [
    "<< /Type /Catalog /Pages 2 0 R >>",
    `<< /Type /Pages /Kids [${texts.map((_, at) => `${4 + at * 2} 0 R`).join(" ")}] /Count ${texts.length} >>`,
    "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
  ];
  for (const [at, text] of texts.entries()) {
    const content = text === "" ? "" : `BT /F1 12 Tf 72 700 Td (${text}) Tj ET`;
    objects.push(
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents ${5 + at * 2} 0 R >>`,
      `<< /Length ${content.length} >>\nstream\n${content}\nendstream`,
    );
  }
  let file = "%PDF-1.4\n";
  const offsets = objects.map((object, at) => {
    const offset = file.length;
    file += `${at + 1} 0 obj\n${object}\nendobj\n`;
    return `${String(offset).padStart(10, "0")} 00000 n \n`;
  });
  const start = file.length;
  file += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${offsets.join("")}`;
  file += `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${start}\n%%EOF\n`;
  return given(name, "application/pdf", file);
}

const choose = (page: Page, ...files: Given[]) => page.locator("input[type=file]").setInputFiles(files);

/** Drops or pastes files into the page. */
async function put(page: Page, how: "drop" | "paste", ...files: Given[]): Promise<void> {
  const transfer = await page.evaluateHandle(
    (files) => {
      const transfer = new DataTransfer();
      for (const { name, mimeType, base64 } of files) {
        const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
        transfer.items.add(new File([bytes], name, { type: mimeType }));
      }
      return transfer;
    },
    files.map(({ name, mimeType, buffer }) => ({ name, mimeType, base64: buffer.toString("base64") })),
  );
  await page.evaluate(
    ([how, transfer]) => {
      const target = document.querySelector("form textarea");
      const options = { bubbles: true, cancelable: true };
      if (how === "paste")
        return target?.dispatchEvent(
          new ClipboardEvent("paste", { ...options, clipboardData: transfer as DataTransfer }),
        );
      const dataTransfer = transfer as DataTransfer;
      target?.dispatchEvent(new DragEvent("dragover", { ...options, dataTransfer }));
      return target?.dispatchEvent(new DragEvent("drop", { ...options, dataTransfer }));
    },
    [how, transfer] as const,
  );
}

const chip = (page: Page, name: string) => page.locator(".attached > li").filter({ hasText: name });
const answer = (page: Page, text: string) =>
  page.locator(".part[data-kind=text]").filter({ hasText: text }).last();

async function ready(page: Page, name: string): Promise<void> {
  await chip(page, name).and(page.locator("[aria-busy=false]")).waitFor();
}

/** Files on the server. */
async function stored(user: BrowserUser): Promise<string[]> {
  const client = await fixture.server.client();
  void user;
  const { items } = await client.call("GET /v1/files");
  return items.map(({ name }) => name);
}

test("table is attached as text, shown as a chip, and kept by an edit", async () => {
  const user = await fixture.user();
  const { page } = user;
  await put(page, "drop", TABLE, CODE);
  await ready(page, "sales.csv");
  await ready(page, "main.rs");
  await chip(page, "main.rs").getByRole("button", { name: "Remove main.rs" }).click();
  await expect.poll(() => page.locator(".attached > li").count()).toBe(1);
  await user.picture("files");
  expect(await user.violations()).toEqual([]);
  await user.send("What is the total?");
  await answer(page, "I read the table.").waitFor();
  await user.settled();
  await expect.poll(() => page.locator(".user-bubble").textContent()).toBe("What is the total?");
  await page.locator(".attached").waitFor({ state: "detached" });
  const file = page.locator(".file-chip");
  await file.locator("summary").click();
  await expect.poll(() => file.locator("pre").textContent()).toBe("month,total\nMay,7\n");
  await user.picture("file-in-message");
  expect(await user.violations()).toEqual([]);

  await page.getByRole("button", { name: "Edit", exact: true }).click();
  const field = page.getByRole("textbox", { name: "Your message" });
  await expect.poll(() => field.inputValue()).toBe("What is the total?");
  await field.fill("And the mean?");
  await page.getByRole("button", { name: "Send", exact: true }).first().click();
  await page.getByText("2 of 2").waitFor();
  await user.settled();
  await expect.poll(() => page.locator("article").last().textContent()).toContain("I read the table.");
  await page.reload();
  await file.waitFor();
  await page
    .locator("main header h1")
    .filter({ hasText: /^And the mean\?$/ })
    .waitFor();
});

test("PDF is read by the server page by page, and its file is deleted", async () => {
  const user = await fixture.user();
  const { page } = user;
  const before = await stored(user);
  await choose(page, pdf("report.pdf", "First page", "The answer is 42", ""));
  // Sent at once: the file may still be loading.
  await user.send("What is the answer?");
  await answer(page, "I read the PDF.").waitFor();
  await user.settled();
  await page.locator(".file-chip summary").click();
  await expect
    .poll(() => page.locator(".file-chip pre").textContent())
    .toBe("[page 1]\nFirst page\n\n[page 2]\nThe answer is 42");
  await expect.poll(() => stored(user)).toEqual(before);
  // A conversation that begins with only a file is named after it.
  await page.locator("main header").getByRole("link", { name: "New conversation" }).click();
  await page.getByRole("heading", { name: "What can I do for you?" }).waitFor();
  await choose(page, TABLE);
  await ready(page, "sales.csv");
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await answer(page, "I read the table.").waitFor();
  await user.settled();
  await page.locator("main header h1").filter({ hasText: "sales.csv" }).waitFor();
});

test.each<[string, BrowserOptions]>([
  ["en", {}],
  ["zh-dark", { locale: "zh-CN", colorScheme: "dark" }],
  ["phone", { width: 390, height: 844 }],
])("unsupported file is refused with a remedy, %s", async (name, kind) => {
  const user = await fixture.user(kind);
  const { page } = user;
  const refusals = page.locator(".refused li");
  await put(
    page,
    "paste",
    ARCHIVE,
    pdf("scan.pdf", "", ""),
    given("broken.pdf", "application/pdf", "%PDF-1.7\nthis is none"),
    given("long.txt", "text/plain", "long ".repeat(100_000)),
    given("empty.txt", "text/plain", ""),
    TABLE,
  );
  await expect.poll(() => refusals.count()).toBe(5);
  await ready(page, "sales.csv");
  const all = async () => (await refusals.allTextContents()).join("\n");
  const sentences =
    kind.locale === "zh-CN"
      ? [
          /report\.docx.*不是文本/,
          /scan\.pdf.*没有找到文字/,
          /broken\.pdf.*无法把这个文件当作 PDF 读取/,
          /400 kB/,
          /empty\.txt/,
        ]
      : [
          /report\.docx.*Save it as PDF/,
          /No text was found in “scan\.pdf”/,
          /broken\.pdf.*cannot be read as a PDF/,
          /400 kB/,
          /“empty\.txt” is empty/,
        ];
  for (const sentence of sentences) await expect.poll(all).toMatch(sentence);
  await user.picture(`files-refused-${name}`);
  expect(await user.violations()).toEqual([]);
  await page.locator(".refused button").click();
  await refusals.first().waitFor({ state: "detached" });
});

test("message waits for its file, and is not sent without it", async () => {
  const user = await fixture.user();
  const { page } = user;
  let respond = (): void => undefined;
  const gate = new Promise<void>((resolve) => {
    respond = resolve;
  });
  await page.route("**/v1/files/*/text*", async (route) => {
    await gate;
    await route.continue();
  });
  await choose(page, pdf("scan.pdf", ""));
  await chip(page, "scan.pdf").and(page.locator("[aria-busy=true]")).waitFor();
  await user.type("What is in it?");
  respond();
  await page.getByText("No text was found in “scan.pdf”").waitFor();
  await expect.poll(() => page.locator("form textarea").inputValue()).toBe("What is in it?");
  expect(await page.locator(".user-bubble").count()).toBe(0);
  await page.keyboard.press("Enter");
  await answer(page, "I was given no file.").waitFor();
  await user.settled();
});

test("large picture is scaled down before it is sent", async () => {
  const user = await fixture.user();
  const { page } = user;
  const large = await page.evaluate(async () => {
    const canvas = document.createElement("canvas");
    Object.assign(canvas, { width: 3_000, height: 1_000 });
    canvas.getContext("2d")?.fillRect(0, 0, 100, 100);
    const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, "image/png"));
    const bytes = new Uint8Array((await blob?.arrayBuffer()) ?? new ArrayBuffer());
    return Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  });
  await put(page, "paste", given("wide.png", "image/png", Buffer.from(large, "latin1")));
  await ready(page, "wide.png");
  await user.send("What do you see?");
  await answer(page, "I see a picture.").waitFor();
  await user.settled();
  await page.reload();
  const picture = page.getByRole("img", { name: "Image" }).first();
  await picture.waitFor();
  await expect.poll(() => picture.evaluate((image) => (image as HTMLImageElement).naturalWidth)).toBe(2_048);
});

test("dragged files highlight the drop area", async () => {
  const user = await fixture.user();
  const { page } = user;
  await page.evaluate(() => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File(["x"], "x.txt"));
    const target = document.querySelector("form textarea");
    target?.dispatchEvent(new DragEvent("dragover", { bubbles: true, cancelable: true, dataTransfer }));
  });
  await page.getByText("Drop files to add them").waitFor();
  await user.picture("files-dragged");
  await page.evaluate(() => {
    const target = document.querySelector("main form")?.closest(".relative.flex");
    document
      .querySelector("form textarea")
      ?.dispatchEvent(new DragEvent("dragleave", { bubbles: true, relatedTarget: null }));
    return target?.tagName;
  });
  await page.getByText("Drop files to add them").waitFor({ state: "detached" });
});
