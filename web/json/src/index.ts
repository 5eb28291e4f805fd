// JSON for people: what a value is best read as, and JSON that is not whole yet.

export { type PartialEntry, PartialJson, type PartialState, type Path } from "./partial.ts";
export { pretty, type Shape, shapeOf } from "./shape.ts";
