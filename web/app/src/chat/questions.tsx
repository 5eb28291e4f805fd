import { visible } from "@throughline/visible";
import { useEffect, useSyncExternalStore } from "react";
import { useWords } from "../i18n/use.ts";
import { tab } from "../shared/tab.ts";
import { useChat } from "./context.tsx";
import type { OpenApprovals } from "./model/open-approvals.ts";

/** Bar for several open approvals: links to them, and one answer for all. */
export function QuestionBar() {
  const words = useWords();
  const { openApprovals, conversation } = useChat();
  const pending = useSyncExternalStore(openApprovals.subscribe, openApprovals.get);
  const { running } = useSyncExternalStore(conversation.subscribe, conversation.get);
  if (pending.length < 2 || running === undefined) return null;
  const approveAll = (): void =>
    void conversation.decide(running, "all", { decision: "approve" }).catch(() => undefined);
  return (
    <div className="question-bar">
      <b>{words.questionsOpen(pending.length)}</b>
      <div>
        <button type="button" className="button" onClick={() => openApprovals.target()?.show()}>
          {words.review} <kbd aria-hidden>F6</kbd>
        </button>
        <button type="button" className="button" onClick={approveAll}>
          {words.approveAll(pending.length)}
        </button>
      </div>
    </div>
  );
}

/** Shows open approvals in the title of the tab. */
export function useTabTitle(openApprovals: OpenApprovals, title: string): void {
  const words = useWords();
  const count = useSyncExternalStore(openApprovals.subscribe, openApprovals.get).length;
  useEffect(() => {
    const name = title === "" ? words.appName : `${visible(title)} · ${words.appName}`;
    tab.show(name, count, words.needsYouTitle(count));
  }, [count, title, words]);
  useEffect(() => () => tab.show(words.appName, 0, ""), [words]);
}
