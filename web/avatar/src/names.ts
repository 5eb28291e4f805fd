// Names under which a model may request an expression or a motion.

import type { AvatarInfo } from "./driver.ts";

/** Synonyms by name. Only names that the avatar has are used. */
const OTHER_NAMES: Readonly<Record<string, readonly string[]>> = {
  neutral: ["default", "normal", "calm", "none", "reset", "平静", "默认"],
  smile: ["happy", "happiness", "glad", "friendly", "pleased", "微笑", "开心"],
  laugh: ["joy", "laughing", "lol", "delighted", "fun", "grin", "大笑", "喜悦"],
  wink: ["winking", "playful", "tease", "眨眼", "俏皮"],
  love: ["loving", "heart", "hearts", "adore", "affection", "喜欢", "爱"],
  shy: ["blush", "embarrassed", "bashful", "害羞"],
  excited: ["star", "stars", "amazed", "wow", "proud", "兴奋", "激动"],
  thinking: ["think", "thoughtful", "curious", "confused", "wonder", "思考", "疑惑"],
  surprised: ["surprise", "shocked", "astonished", "惊讶", "吃惊"],
  sad: ["sadness", "sorry", "cry", "crying", "unhappy", "难过", "伤心"],
  angry: ["anger", "mad", "annoyed", "pout", "生气"],
  sleepy: ["tired", "sleep", "bored", "yawn", "困", "疲惫"],
  Idle: ["stretch", "look", "待机"],
  TapBody: ["tap", "tap_body", "poke", "tickle", "戳"],
  Wave: ["waving", "hello", "hi", "greet", "bye", "挥手"],
  Nod: ["nodding", "yes", "agree", "点头"],
  Shake: ["shake_head", "no", "disagree", "摇头"],
  Shrug: ["shrugging", "dunno", "who_knows", "耸肩"],
  Bow: ["bowing", "thanks", "鞠躬"],
  Dance: ["dancing", "跳舞"],
  Jump: ["hop", "cheer", "跳"],
};

/** Finds the avatar's name for a requested one. */
export class Names {
  readonly #meant = new Map<string, string>();
  readonly known: readonly string[];

  constructor(known: readonly string[]) {
    this.known = known;
    for (const name of known)
      for (const other of OTHER_NAMES[name] ?? []) this.#meant.set(plain(other), name);
    // Own names win over synonyms.
    for (const name of known) this.#meant.set(plain(name), name);
  }

  static ofExpressions({ expressions }: AvatarInfo): Names {
    return new Names(expressions);
  }

  static ofMotions({ motions }: AvatarInfo): Names {
    return new Names(Object.keys(motions));
  }

  find(requested: string): string | undefined {
    return this.#meant.get(plain(requested));
  }
}

/** Normalizes a name: `Tap Body`, `tap_body` and `TapBody` are equal. */
function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[\s_.-]/g, "");
}
