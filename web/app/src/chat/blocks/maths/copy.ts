// What is copied of a formula is its source: of its signs alone nobody could make it again.

/** From now on, in this document. */
export function copySources(document: Document): void {
  document.addEventListener("copy", (event) => {
    const selection = document.getSelection();
    if (selection === null || selection.isCollapsed || event.clipboardData === null) return;
    const formulas = [...document.querySelectorAll<HTMLElement>("[data-tex]")].filter((one) =>
      selection.containsNode(one, true),
    );
    if (formulas.length === 0) return;
    // For the moment of copying the sources stand there, so that the browser writes the text around them as ever. Within the formulas:
    // a selection ends at the nth child of a paragraph, which more children beside them would make another one.
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
