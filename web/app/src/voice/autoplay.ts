import { Preference } from "../preferences.ts";

/** Whether replies with sound are heard as they come. */
export const autoplay = new Preference<"on" | "off">("throughline.voice", (value) =>
  value === "off" ? value : "on",
);
