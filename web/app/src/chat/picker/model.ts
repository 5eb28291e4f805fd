// Rows of the model picker. Framework-free.

import type { AgentInfo, ModelEntry } from "@throughline/client";
import { folded } from "@throughline/json";

export interface PickerRow {
  /** Name of an agent, or `upstream/model`. */
  id: string;
  kind: "agent" | "model";
  /** Known properties of the model; for an agent, of its first model. */
  facts: ModelEntry | undefined;
  /** Model of an agent. */
  note: string;
  isLastUsed: boolean;
}

/** Models, recently used ones first; then agents, if there are several. */
export function rowsOf(
  entries: readonly ModelEntry[],
  agents: readonly AgentInfo[],
  recent: readonly string[],
): PickerRow[] {
  const rank = (id: string): number => (recent.includes(id) ? recent.indexOf(id) : recent.length);
  const models = entries
    .filter(({ owned_by }) => owned_by !== "throughline")
    .map(
      (facts): PickerRow => ({
        id: facts.id,
        kind: "model",
        facts,
        note: "",
        isLastUsed: recent[0] === facts.id,
      }),
    )
    .sort((a, b) => rank(a.id) - rank(b.id));
  const others = agents.map(
    ({ name, model }): PickerRow => ({
      id: name,
      kind: "agent",
      facts: entries.find(({ id, owned_by }) => id === name && owned_by === "throughline"),
      note: model ?? "",
      isLastUsed: false,
    }),
  );
  return agents.length > 1 ? [...models, ...others] : models;
}

export function found(rows: readonly PickerRow[], search: string): PickerRow[] {
  const words = folded(search).split(/\s+/).filter(Boolean);
  return rows.filter(({ id, note }) => words.every((word) => folded(`${id} ${note}`).includes(word)));
}

/** `128k`, `1M`. */
export function short(tokens: number): string {
  if (tokens >= 1_000_000) return `${Math.round(tokens / 100_000) / 10}M`;
  // Upstreams count in thousands or in powers of two: 131,072 is commonly called 128k.
  const isBinary = tokens % 1_024 === 0 && tokens % 1_000 !== 0;
  return isBinary ? `${tokens / 1_024}k` : `${Math.round(tokens / 1_000)}k`;
}
