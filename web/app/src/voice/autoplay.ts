import { Preference } from "../preferences.ts";

/** Whether replies with audio are played as they arrive. */
export const autoplay = new Preference<"on" | "off">("throughline.voice", (value) =>
  value === "off" ? value : "on",
);
