import { checkEveryScene } from "../scenes/axe.ts";

checkEveryScene("zh-CN");
