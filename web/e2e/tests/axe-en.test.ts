import { checkEveryScene } from "../scenes/axe.ts";

checkEveryScene("en");
