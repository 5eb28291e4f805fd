import type { ElementType, Key } from "react";
import { type JSX, type JSXSource, jsxDEV as one } from "react/jsx-dev-runtime";
import { type Props, shown } from "./element.ts";

export { Fragment, type JSX } from "react/jsx-dev-runtime";

export function jsxDEV(
  type: ElementType,
  props: Props,
  key: Key | undefined,
  isStatic: boolean,
  source?: JSXSource,
  self?: unknown,
): JSX.Element {
  return one(type, shown(type, props), key, isStatic, source, self);
}
