/** A small line without axes: how a value went. */

const WIDTH = 96;
const HEIGHT = 22;

/** `most` is the top of the scale; a null is a gap. */
export function Sparkline({
  values,
  most,
  label,
}: {
  values: readonly (number | null)[];
  most: number;
  label: string;
}) {
  const top = most > 0 ? most : 1;
  const step = values.length > 1 ? WIDTH / (values.length - 1) : WIDTH;
  let path = "";
  let isDrawing = false;
  values.forEach((value, index) => {
    if (value === null) {
      isDrawing = false;
      return;
    }
    const y = HEIGHT - 2 - Math.min(1, Math.max(0, value / top)) * (HEIGHT - 4);
    path += `${isDrawing ? "L" : "M"}${(index * step).toFixed(1)} ${y.toFixed(1)}`;
    isDrawing = true;
  });
  return (
    <svg
      class="sparkline"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      width={WIDTH}
      height={HEIGHT}
      role="img"
      aria-label={label}
      preserveAspectRatio="none"
    >
      <line x1="0" x2={WIDTH} y1={HEIGHT - 2} y2={HEIGHT - 2} class="sparkline-base" />
      <path d={path} />
    </svg>
  );
}
