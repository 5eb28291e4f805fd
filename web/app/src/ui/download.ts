// Downloads a generated file.

export function download(file: Blob, name: string): void {
  const url = URL.createObjectURL(file);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // The browser has read the blob by then; a started download keeps its data.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
