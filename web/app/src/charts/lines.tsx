/** Values one after the other; what is not known has none. */
export type Series = readonly (number | null | undefined)[];

interface LinesProps {
  /** What it shows, in a sentence: it is a picture. */
  label: string;
  /** The first is drawn as a line, the second is dashed. */
  series: readonly Series[];
  /** What each of them may be at most; what is above is marked. */
  limits?: readonly (number | undefined)[] | undefined;
  /** How a value is written. */
  said(value: number): string;
  /** When it begins and ends. */
  from: string;
  until: string;
}

const HEIGHT = 100;
/** So many times the highest value a limit may be, to be drawn. */
const NEAR = 3;

/** Small line charts. Zero is at the bottom, the highest value at the top; known values are joined over what is not known. */
export function Lines({ label, series, limits = [], said, from, until }: LinesProps) {
  const known = series.flat().filter((value) => value != null);
  const highest = Math.max(...known, 0);
  // A limit far above everything would make a flat line of what there is.
  const near = limits.map((limit) => (limit !== undefined && limit <= highest * NEAR ? limit : undefined));
  const top = Math.max(highest, ...near.map((limit) => limit ?? 0));
  const last = Math.max(1, (series[0]?.length ?? 0) - 1);
  const place = (value: number, at: number): string => `${at} ${HEIGHT - (value / (top || 1)) * HEIGHT}`;
  const drawn = (values: Series, number: number) => {
    const limit = limits[number];
    const over = values.flatMap((value, at) =>
      value != null && limit !== undefined && value > limit ? [`M${place(value, at)}h0`] : [],
    );
    const points = values.flatMap((value, at) => (value == null ? [] : place(value, at)));
    // What has nothing beside it would not be seen: it is a line without length, which is a dot.
    const alone = values.flatMap((value, at) => {
      const isAlone = values[at - 1] == null || values[at + 1] == null;
      return value == null || !isAlone ? [] : `M${place(value, at)}h0`;
    });
    return {
      line: points.length > 1 ? `M${points.join("L")}` : "",
      dots: alone.join(""),
      over: over.join(""),
    };
  };
  return (
    <div className="lines">
      <p aria-hidden>{top > 0 && said(top)}</p>
      <svg role="img" aria-label={label} viewBox={`0 0 ${last} ${HEIGHT}`} preserveAspectRatio="none">
        {near.map(
          (limit, number) =>
            limit !== undefined && (
              <path key={number} className="limit" d={`M${place(limit, 0)}H${last}`} data-limit={limit} />
            ),
        )}
        {series.map(drawn).map(({ line, dots, over }, number) => (
          <g key={number} data-line={number}>
            <path d={line} />
            <path className="dots" d={dots} />
            {over !== "" && <path className="dots over" d={over} />}
          </g>
        ))}
      </svg>
      <p aria-hidden>
        {from}
        <span>{until}</span>
      </p>
    </div>
  );
}
