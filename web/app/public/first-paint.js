// Theme and language before anything is drawn. A file of its own: the page's policy runs no script that stands in the page.
// What is kept, and under which names, is `src/preferences.ts`'s to say; a test compares the two.
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
  // As `LANGUAGES` in `src/preferences.ts`.
  root.lang = ["zh-CN"].find((one) => primary(one) === primary(language)) ?? "en";
})();
