/** Consecutive values; unknown ones are absent. */
export type Series = readonly (number | null | undefined)[];

interface LinesProps {
  /** Accessible label of the chart, in a sentence. */
  label: string;
  /** One or two series; the second one is dashed. */
  series: readonly Series[];
  /** Upper limit of each series; values above it are marked. */
  limits?: readonly (number | undefined)[] | undefined;
  /** Formats a value. */
  format(value: number): string;
  /** Labels of the ends of the time axis. */
  from: string;
  until: string;
}

const HEIGHT = 100;
/** A limit is drawn only if it is less than this many times the highest value. */
const NEAR = 3;

/** Small line charts. Zero is at the bottom, the highest value at the top; known values are joined over what is not known. */
export function Lines({ label, series, limits = [], format, from, until }: LinesProps) {
  const known = series.flat().filter((value) => value != null);
  const highest = Math.max(...known, 0);
  // A limit far above all values would flatten the chart.
  const near = limits.map((limit) => (limit !== undefined && limit <= highest * NEAR ? limit : undefined));
  const top = Math.max(highest, ...near.map((limit) => limit ?? 0));
  const last = Math.max(1, (series[0]?.length ?? 0) - 1);
  const pointOf = (value: number, at: number): string => `${at} ${HEIGHT - (value / (top || 1)) * HEIGHT}`;
  const drawn = (values: Series, number: number) => {
    const limit = limits[number];
    const over = values.flatMap((value, at) =>
      value != null && limit !== undefined && value > limit ? [`M${pointOf(value, at)}h0`] : [],
    );
    const points = values.flatMap((value, at) => (value == null ? [] : pointOf(value, at)));
    // A value without neighbors is drawn as a dot: a line without length.
    const alone = values.flatMap((value, at) => {
      const isAlone = values[at - 1] == null || values[at + 1] == null;
      return value == null || !isAlone ? [] : `M${pointOf(value, at)}h0`;
    });
    return {
      line: points.length > 1 ? `M${points.join("L")}` : "",
      dots: alone.join(""),
      over: over.join(""),
    };
  };
  return (
    <div className="lines">
      <p aria-hidden>{top > 0 && format(top)}</p>
      <svg role="img" aria-label={label} viewBox={`0 0 ${last} ${HEIGHT}`} preserveAspectRatio="none">
        {near.map(
          (limit, number) =>
            limit !== undefined && (
              <path key={number} className="limit" d={`M${pointOf(limit, 0)}H${last}`} data-limit={limit} />
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
