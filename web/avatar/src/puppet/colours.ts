// The colours of the puppet. They are its own and the same in every theme, as those of a photograph.

export const HAIR = ["#2cb5a6", "#14857c", "#0d6a66"] as const;
export const HAIR_BACK = ["#0f726c", "#0a5656"] as const;
export const HAIR_LINE = "#0b5c59";
export const HAIR_SHINE = "#8fe8da";
export const SKIN = ["#fff1e4", "#ffe0cb"] as const;
export const SKIN_SHADE = "#f5bfa2";
export const LINE = "#3a2a3c";
export const BLUSH = "#ff8a80";
export const IRIS = ["#7a3b10", "#d9822b", "#ffd978"] as const;
export const PUPIL = "#3b1c10";
export const WHITE = "#fffdfa";
export const MOUTH = "#a3353f";
export const TONGUE = "#f58a8a";
export const KNIT = ["#fff6e6", "#f2dcbd"] as const;
export const KNIT_LINE = "#d8b88c";
export const THREAD = ["#7d81ea", "#5357c2"] as const;
export const THREAD_DARK = "#3f43a3";
export const GOLD = "#ffc94d";
export const GOLD_DARK = "#c98a1b";
export const WATER = "#8fd3ff";
export const WATER_DARK = "#4fa6e0";
export const HEART = "#ff6b8b";
export const RED = "#ff6a5a";
export const CLOUD = "#a3a6e8";
