// JSON for people: the best view of a value, and JSON that is still incomplete.

export { csvField, csvOfRows } from "./csv.ts";
export { folded } from "./fold.ts";
export {
  HITS_MAX,
  isLarge,
  type Openness,
  rowsOfTableWith,
  rowsOfTree,
  rowsWith,
  type TreeRow,
  textOf,
} from "./large.ts";
export { type PartialEntry, PartialJson, type PartialState, type Path } from "./partial.ts";
export { pretty, type Shape, shapeOf } from "./shape.ts";
