import { checkEveryScene } from "../scenes/axe.ts";

// R: U6
checkEveryScene("zh-CN");
