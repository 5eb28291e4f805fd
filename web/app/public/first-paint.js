// Sets theme and language before the first paint. A separate file, because the page's policy forbids inline scripts.
// Keys and values are those of `src/preferences.ts`; a test compares the two.
(() => {
  const read = (name) => {
    try {
      return localStorage.getItem(name);
    } catch {
      return null;
    }
  };
  const theme = read("throughline.theme");
  const dark = theme === "dark" || (theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  const language = read("throughline.language") ?? navigator.language;
  const root = document.documentElement;
  root.dataset.theme = dark ? "dark" : "light";
  const primary = (tag) => tag.toLowerCase().split("-")[0];
  // The `LANGUAGES` of `src/preferences.ts`.
  root.lang = ["zh-CN"].find((one) => primary(one) === primary(language)) ?? "en";
})();
