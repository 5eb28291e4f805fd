// What the tab and the icon of an installed page say: what is talked about, and how much waits. Framework-free.

class Tab {
  #title = "";
  #asks = 0;
  #asksText = "";
  #unseen = 0;

  /** `asks`: so many questions are open, and how that is said. */
  show(title: string, asks: number, asksText: string): void {
    this.#title = title;
    this.#asks = asks;
    this.#asksText = asksText;
    this.#draw();
  }

  /** So much has happened while nobody looked. */
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

/** On the icon of a page that is installed; other browsers have none. */
function setBadge(count: number): void {
  if (count === shown || typeof navigator.setAppBadge !== "function") return;
  shown = count;
  void (count > 0 ? navigator.setAppBadge(count) : navigator.clearAppBadge()).catch(() => undefined);
}
