// Copied formulas become their TeX source, since their symbols alone cannot be turned back into it.

/** Installs the copy handler in this document. */
export function copySources(document: Document): void {
  document.addEventListener("copy", (event) => {
    const selection = document.getSelection();
    if (selection === null || selection.isCollapsed || event.clipboardData === null) return;
    const formulas = [...document.querySelectorAll<HTMLElement>("[data-tex]")].filter((one) =>
      selection.containsNode(one, true),
    );
    if (formulas.length === 0) return;
    // The sources are inserted for the moment of copying, so that the browser serializes the surrounding text as usual. They go inside the
    // formulas: selections end at the nth child of a paragraph, and new siblings would shift that.
    const sources = formulas.map((formula) => {
      const source = document.createElement("span");
      source.textContent = formula.dataset.tex ?? "";
      formula.prepend(source);
      formula.dataset.copied = "";
      return source;
    });
    const text = selection.toString();
    for (const source of sources) source.remove();
    for (const formula of formulas) delete formula.dataset.copied;
    event.clipboardData.setData("text/plain", text);
    event.preventDefault();
  });
}
