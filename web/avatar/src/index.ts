// An avatar that acts while a reply streams. It needs no framework, and contains no third-party code.

export { browserClock, type Clock } from "./clock.ts";
export type { AvatarDriver, AvatarInfo, AvatarSource, CueResult } from "./driver.ts";
export { Names } from "./names.ts";
export { PUPPET, Puppet, type PuppetOptions } from "./puppet/puppet.ts";
export { AvatarStage, FALL_BACK_MS, type Mood, type StageState } from "./stage.ts";
