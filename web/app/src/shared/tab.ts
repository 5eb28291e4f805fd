// Title of the tab and badge of the installed page: the conversation, and the number of open approvals. Framework-free.

class Tab {
  #title = "";
  #asks = 0;
  #asksText = "";
  #unseen = 0;

  /** `asks`: number of open approvals, and its text. */
  show(title: string, asks: number, asksText: string): void {
    this.#title = title;
    this.#asks = asks;
    this.#asksText = asksText;
    this.#draw();
  }

  /** Number of notifications since the page was last visible. */
  setUnseen(unseen: number): void {
    this.#unseen = unseen;
    if (this.#title === "") this.#title = document.title;
    this.#draw();
  }

  #draw(): void {
    const mark = this.#asks > 0 ? `${this.#asksText} · ` : this.#unseen > 0 ? `(${this.#unseen}) ` : "";
    document.title = mark + this.#title;
    setBadge(Math.max(this.#asks, this.#unseen));
  }
}

export const tab = new Tab();

let shown = 0;

/** Badge of an installed page; other browsers have none. */
function setBadge(count: number): void {
  if (count === shown || typeof navigator.setAppBadge !== "function") return;
  shown = count;
  void (count > 0 ? navigator.setAppBadge(count) : navigator.clearAppBadge()).catch(() => undefined);
}
