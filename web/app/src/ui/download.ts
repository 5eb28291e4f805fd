// A file that the page has made, given to the browser.

export function download(file: Blob, name: string): void {
  const url = URL.createObjectURL(file);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // The browser has taken it by then; a download that has begun keeps what it needs.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
