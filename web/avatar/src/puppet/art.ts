// Parts of the puppet with a constant shape. Twine: hair like the sea, a scarf of one long thread, and a button that is sewn on.

import * as color from "./colors.ts";
import { line, shape, svg } from "./svg.ts";

/** Ids of gradients; a page may contain several puppets. */
export interface Paint {
  hair: string;
  back: string;
  skin: string;
  knit: string;
  thread: string;
  skirt: string;
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
      { fill: color.SKIN_SHADE, opacity: 0.45 },
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
    // The light on the fringe.
    shape(
      "M84,104 C104,74 216,74 236,104 C228,100 222,98 217,99 C214,95 208,93 203,95 C196,89 186,88 180,91 C170,86 156,86 148,91 C140,87 130,89 125,94 C118,92 112,94 109,99 C100,97 92,99 84,104 Z",
      { fill: color.HAIR_SHINE, opacity: 0.6 },
    ),
    line(
      "M178,110 C176,100 172,92 166,84 M139,113 C140,102 143,94 148,86 M211,116 C208,106 204,98 198,90",
      color.HAIR_LINE,
      2,
      {
        opacity: 0.55,
      },
    ),
  );

/** The tuft on top, which sways on its own. */
export const tuft = (paint: Paint): SVGElement =>
  svg(
    "g",
    {},
    shape("M150,50 C140,26 158,2 194,6 C180,12 174,22 176,34 C182,28 192,26 200,30 C188,34 178,42 174,52 Z", {
      fill: use(paint.hair),
    }),
    line("M160,44 C156,28 166,14 180,10", color.HAIR_SHINE, 2.4, { opacity: 0.7 }),
  );

export const button = (): SVGElement =>
  svg(
    "g",
    { transform: "translate(226 110) rotate(14)" },
    svg("circle", { r: 14.5, fill: color.GOLD, stroke: color.GOLD_DARK, "stroke-width": 2 }),
    svg("circle", { r: 10, fill: "none", stroke: color.GOLD_DARK, "stroke-width": 1.4, opacity: 0.7 }),
    line("M-3.6,-3.6 L3.6,3.6 M3.6,-3.6 L-3.6,3.6", color.THREAD_DARK, 2.6),
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
    shape("M146,222 H174 V252 H146 Z", { fill: color.SKIN_SHADE }),
    shape(
      "M160,250 C192,250 216,258 226,282 C232,306 234,346 235,392 C235,400 230,404 222,404 H98 C90,404 85,400 85,392 C86,346 88,306 94,282 C104,258 128,250 160,250 Z",
      { fill: use(paint.knit), stroke: color.KNIT_LINE, "stroke-width": 2 },
    ),
    // The knitted pattern.
    line("M112,300 q-4,40 -4,84 M208,300 q4,40 4,84", color.KNIT_LINE, 1.8, { opacity: 0.55 }),
    line(
      "M87,388 H233 M104,391 v10 M124,391 v10 M144,391 v10 M176,391 v10 M196,391 v10 M216,391 v10",
      color.KNIT_LINE,
      1.8,
      {
        opacity: 0.7,
      },
    ),
    // The thread through the knitting, and its knots.
    line("M160,276 C152,306 172,322 162,350 C158,362 160,376 162,402", use(paint.thread), 3.2, {
      "stroke-dasharray": "9 6",
    }),
    svg("circle", {
      cx: 165,
      cy: 330,
      r: 5.5,
      fill: color.KNIT[0],
      stroke: color.THREAD[1],
      "stroke-width": 3,
    }),
    svg("circle", { cx: 159, cy: 368, r: 5.5, fill: color.THREAD[1] }),
  );

/** The skirt, which sways with the body. */
export const skirt = (paint: Paint): SVGElement =>
  svg(
    "g",
    {},
    shape("M96,396 H224 C230,416 238,434 246,452 C218,464 102,464 74,452 C82,434 90,416 96,396 Z", {
      fill: use(paint.skirt),
      stroke: color.SKIRT_LINE,
      "stroke-width": 2,
    }),
    line("M122,408 L110,456 M160,408 V460 M198,408 L210,456", color.SKIRT_LINE, 2, { opacity: 0.7 }),
    line("M80,444 C108,455 212,455 240,444", color.THREAD[0], 3),
  );

/** The legs, which never move. */
export const legs = (): SVGElement =>
  svg(
    "g",
    {},
    ...([-1, 1] as const).map((side) =>
      svg(
        "g",
        { transform: `translate(160 0) scale(${side} 1)` },
        shape("M10,436 H38 C38,466 36,490 34,510 H14 C11,490 9,466 10,436 Z", {
          fill: color.SKIN[1],
          stroke: color.SKIN_SHADE,
          "stroke-width": 1.6,
        }),
        shape("M12,484 H37 L34,514 H14 Z", {
          fill: color.KNIT[0],
          stroke: color.KNIT_LINE,
          "stroke-width": 1.6,
        }),
        line("M13,491 H36", color.THREAD[1], 3.4),
        shape("M11,508 H36 C48,512 54,520 52,528 C52,531 50,532 47,532 H14 C10,532 8,529 8,525 Z", {
          fill: color.SHOE,
          stroke: color.SHOE_DARK,
          "stroke-width": 1.8,
        }),
        line("M9,528 H51", color.SHOE_DARK, 3),
        line("M20,514 L31,517", color.GOLD, 2.6),
      ),
    ),
  );

export const ground = (): SVGElement =>
  svg("ellipse", { cx: 160, cy: 532, rx: 84, ry: 8, fill: color.SKIRT_LINE, opacity: 0.14 });

export const scarf = (paint: Paint): SVGElement =>
  svg(
    "g",
    {},
    // The loose end of the scarf.
    shape("M116,262 C110,290 104,312 108,336 L134,340 C136,314 138,292 144,268 Z", {
      fill: use(paint.thread),
      stroke: color.THREAD_DARK,
      "stroke-width": 1.6,
    }),
    line("M109,337 l-2,13 M116,338 l-1,14 M123,339 l0,14 M131,340 l2,13", color.THREAD[1], 3.2),
    line("M112,318 L135,321 M114,306 L136,309", "#aeb1ff", 3, { opacity: 0.8 }),
    shape(
      "M106,244 C118,232 202,232 214,244 C224,254 220,270 206,274 C176,282 144,282 114,274 C100,270 96,254 106,244 Z",
      { fill: use(paint.thread), stroke: color.THREAD_DARK, "stroke-width": 1.6 },
    ),
    line("M112,256 C136,266 184,266 208,256", "#aeb1ff", 3, { opacity: 0.75 }),
    line("M126,240 C132,250 134,264 130,276 M186,238 C182,250 184,266 190,277", color.THREAD_DARK, 1.8, {
      opacity: 0.55,
    }),
  );

/** An arm that hangs from its shoulder at 0,0. `side` -1: the left one. */
export const arm = (paint: Paint, side: 1 | -1): SVGElement =>
  svg(
    "g",
    { transform: `scale(${side} 1)` },
    // A hand: fingers, the thumb, and the palm over their roots.
    ...[8.8, 6.4].map((width, at) =>
      line(
        "M-4,98 L-6,110 M2,100 L1,114 M8,100 L9,114 M13,97 L16,109 M-6,92 C-11,93 -14,97 -14,102",
        at === 0 ? color.SKIN_SHADE : color.SKIN[1],
        width,
        { "stroke-linejoin": "round" },
      ),
    ),
    svg("ellipse", { cx: 4.5, cy: 94, rx: 12.4, ry: 11, fill: color.SKIN[1] }),
    line("M-1,101 v4 M5,102 v4 M10,101 v4", color.SKIN_SHADE, 1.2, { opacity: 0.8 }),
    shape("M-16,-8 C2,-16 20,-4 22,18 C24,42 23,64 21,84 C12,90 -2,90 -12,84 C-17,60 -20,20 -16,-8 Z", {
      fill: use(paint.knit),
      stroke: color.KNIT_LINE,
      "stroke-width": 2,
    }),
    line("M-12,74 C-2,80 12,80 21,74", color.THREAD[1], 4),
  );
