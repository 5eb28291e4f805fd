import type { ElementType, Key } from "react";
import { type JSX, jsx as one, jsxs as several } from "react/jsx-runtime";
import { type Props, shown } from "./element.ts";

export { Fragment, type JSX } from "react/jsx-runtime";

export function jsx(type: ElementType, props: Props, key?: Key): JSX.Element {
  return one(type, shown(type, props), key);
}

export function jsxs(type: ElementType, props: Props, key?: Key): JSX.Element {
  return several(type, shown(type, props), key);
}
