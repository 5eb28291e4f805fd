// The parts of the puppet that never change their shape. Twine: hair like the sea, a scarf of one long thread, and a
// button that somebody has sewn on.

import * as colour from "./colours.ts";
import { line, shape, svg } from "./svg.ts";

/** Names of gradients; a page may hold more than one puppet. */
export interface Paint {
  hair: string;
  back: string;
  skin: string;
  knit: string;
  thread: string;
}

const use = (id: string): string => `url(#${id})`;

export const backHair = (paint: Paint): SVGElement =>
  svg(
    "g",
    {},
    shape(
      "M160,44 C226,44 262,92 260,158 C260,198 266,228 280,250 C264,256 250,254 240,246 C238,256 230,264 218,268 C190,276 130,276 102,268 C90,264 82,256 80,246 C70,254 56,256 40,250 C54,228 60,198 60,158 C58,92 94,44 160,44 Z",
      { fill: use(paint.back) },
    ),
    line("M88,236 C92,250 98,258 108,264 M232,236 C228,250 222,258 212,264", "#084846", 2.4, {
      opacity: 0.7,
    }),
  );

export const face = (paint: Paint): SVGElement =>
  svg(
    "g",
    {},
    shape("M88,150 C88,104 232,104 232,150 C234,200 204,237 160,237 C116,237 86,200 88,150 Z", {
      fill: use(paint.skin),
    }),
    // The shadow of the fringe.
    shape(
      "M90,146 C92,112 228,112 230,146 C228,150 226,156 222,158 C214,140 206,134 204,158 C196,144 186,130 180,124 C178,142 170,154 158,162 C154,148 146,134 139,126 C134,142 124,154 108,160 C105,150 102,144 100,138 C96,146 94,154 93,160 Z",
      { fill: colour.SKIN_SHADE, opacity: 0.45 },
    ),
    line("M157.5,197 q2.5,2.6 5,0", "#dd9478", 2.4),
  );

export const fringe = (paint: Paint): SVGElement =>
  svg(
    "g",
    {},
    shape(
      "M160,42 C224,42 260,90 258,154 C258,188 254,214 243,240 C234,222 229,194 228,164 C226,144 220,128 211,116 C212,132 208,142 201,151 C196,134 188,120 178,110 C178,128 170,144 157,155 C154,138 147,124 139,113 C134,131 124,144 108,152 C107,142 104,132 101,125 C95,138 92,152 92,164 C91,194 86,222 77,240 C66,214 62,188 62,154 C60,90 96,42 160,42 Z",
      { fill: use(paint.hair) },
    ),
    // The light that lies on it.
    shape(
      "M84,104 C104,74 216,74 236,104 C228,100 222,98 217,99 C214,95 208,93 203,95 C196,89 186,88 180,91 C170,86 156,86 148,91 C140,87 130,89 125,94 C118,92 112,94 109,99 C100,97 92,99 84,104 Z",
      { fill: colour.HAIR_SHINE, opacity: 0.6 },
    ),
    line(
      "M178,110 C176,100 172,92 166,84 M139,113 C140,102 143,94 148,86 M211,116 C208,106 204,98 198,90",
      colour.HAIR_LINE,
      2,
      {
        opacity: 0.55,
      },
    ),
  );

/** The tuft on top, with a mind of its own. */
export const tuft = (paint: Paint): SVGElement =>
  svg(
    "g",
    {},
    shape("M150,50 C140,26 158,2 194,6 C180,12 174,22 176,34 C182,28 192,26 200,30 C188,34 178,42 174,52 Z", {
      fill: use(paint.hair),
    }),
    line("M160,44 C156,28 166,14 180,10", colour.HAIR_SHINE, 2.4, { opacity: 0.7 }),
  );

export const button = (): SVGElement =>
  svg(
    "g",
    { transform: "translate(226 110) rotate(14)" },
    svg("circle", { r: 14.5, fill: colour.GOLD, stroke: colour.GOLD_DARK, "stroke-width": 2 }),
    svg("circle", { r: 10, fill: "none", stroke: colour.GOLD_DARK, "stroke-width": 1.4, opacity: 0.7 }),
    line("M-3.6,-3.6 L3.6,3.6 M3.6,-3.6 L-3.6,3.6", colour.THREAD_DARK, 2.6),
    svg("ellipse", {
      cx: -5.5,
      cy: -8,
      rx: 4,
      ry: 1.8,
      fill: "#fff",
      opacity: 0.7,
      transform: "rotate(-30 -5.5 -8)",
    }),
  );

export const torso = (paint: Paint): SVGElement =>
  svg(
    "g",
    {},
    shape("M146,222 H174 V252 H146 Z", { fill: colour.SKIN_SHADE }),
    shape(
      "M160,250 C192,250 216,258 226,282 C234,308 238,360 240,440 H80 C82,360 86,308 94,282 C104,258 128,250 160,250 Z",
      { fill: use(paint.knit), stroke: colour.KNIT_LINE, "stroke-width": 2 },
    ),
    // Knitted.
    line("M112,300 q-4,40 -4,88 M208,300 q4,40 4,88", colour.KNIT_LINE, 1.8, { opacity: 0.55 }),
    // The thread that goes through it all, and the knots on it.
    line("M160,276 C152,306 172,322 162,350 C158,362 160,376 162,440", use(paint.thread), 3.2, {
      "stroke-dasharray": "9 6",
    }),
    svg("circle", {
      cx: 165,
      cy: 330,
      r: 5.5,
      fill: colour.KNIT[0],
      stroke: colour.THREAD[1],
      "stroke-width": 3,
    }),
    svg("circle", { cx: 159, cy: 368, r: 5.5, fill: colour.THREAD[1] }),
  );

export const scarf = (paint: Paint): SVGElement =>
  svg(
    "g",
    {},
    // The end that hangs.
    shape("M116,262 C110,290 104,312 108,336 L134,340 C136,314 138,292 144,268 Z", {
      fill: use(paint.thread),
      stroke: colour.THREAD_DARK,
      "stroke-width": 1.6,
    }),
    line("M109,337 l-2,13 M116,338 l-1,14 M123,339 l0,14 M131,340 l2,13", colour.THREAD[1], 3.2),
    line("M112,318 L135,321 M114,306 L136,309", "#aeb1ff", 3, { opacity: 0.8 }),
    shape(
      "M106,244 C118,232 202,232 214,244 C224,254 220,270 206,274 C176,282 144,282 114,274 C100,270 96,254 106,244 Z",
      { fill: use(paint.thread), stroke: colour.THREAD_DARK, "stroke-width": 1.6 },
    ),
    line("M112,256 C136,266 184,266 208,256", "#aeb1ff", 3, { opacity: 0.75 }),
    line("M126,240 C132,250 134,264 130,276 M186,238 C182,250 184,266 190,277", colour.THREAD_DARK, 1.8, {
      opacity: 0.55,
    }),
  );

/** An arm that hangs from its shoulder at 0,0. `side` -1: the one on the left. */
export const arm = (paint: Paint, side: 1 | -1): SVGElement =>
  svg(
    "g",
    { transform: `scale(${side} 1)` },
    svg("circle", {
      cx: 4,
      cy: 92,
      r: 14,
      fill: use(paint.skin),
      stroke: colour.SKIN_SHADE,
      "stroke-width": 1.6,
    }),
    line("M-7,92 q-5,-6 -3,-13", use(paint.skin), 8),
    shape("M-16,-8 C2,-16 20,-4 22,18 C24,42 23,64 21,84 C12,90 -2,90 -12,84 C-17,60 -20,20 -16,-8 Z", {
      fill: use(paint.knit),
      stroke: colour.KNIT_LINE,
      "stroke-width": 2,
    }),
    line("M-12,74 C-2,80 12,80 21,74", colour.THREAD[1], 4),
  );
