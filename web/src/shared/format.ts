/** Numbers as people read them, each with its unit. */

const PREFIXES: readonly [number, string][] = [
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
  [1, ""],
];

/** Three significant digits, and no exponent. */
function digits(value: number): string {
  const size = Math.abs(value);
  return size >= 99.95 ? value.toFixed(0) : size >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}

/** A rate in bit/s, as "8.50 Mbit/s"; a dash where it is not known. */
export function bitrate(bps: number | null | undefined): string {
  if (bps === null || bps === undefined) return "–";
  if (Math.abs(bps) < 0.5) return "0 bit/s";
  const [unit, prefix] = PREFIXES.find(([least]) => Math.abs(bps) >= least * 0.9995) ?? [1, ""];
  return `${digits(bps / unit)} ${prefix}bit/s`;
}

/** A share as "98 %"; "< 1 %" where it would be rounded to nothing. */
export function percent(share: number | null | undefined): string {
  if (share === null || share === undefined) return "–";
  return share > 0 && share < 0.005 ? "< 1 %" : `${Math.round(share * 100)} %`;
}

/** A time span in seconds, as "47.8 ms", "1.20 s" or "3 min 20 s". */
export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds === 0) return "0 s";
  if (seconds < 1e-3) return `${digits(seconds * 1e6)} µs`;
  if (seconds < 1) return `${digits(seconds * 1e3)} ms`;
  if (seconds < 60) return `${digits(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

/** What is left of a time span: whole seconds, so that it does not flicker. */
export function remaining(seconds: number): string {
  return seconds < 60 ? `${Math.max(0, Math.round(seconds))} s` : duration(seconds);
}

/** A size in bytes, as "48.2 MB". */
export function bytes(count: number | null | undefined): string {
  if (count === null || count === undefined) return "–";
  if (count < 1000) return `${Math.round(count)} B`;
  const [unit, prefix] = PREFIXES.find(([least]) => count >= least) ?? [1, ""];
  return `${digits(count / unit)} ${prefix}B`;
}

/** A count with its noun: "1 flow", "2 flows". */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

const CLOCK = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hour12: false,
});

/** The time of day of a moment in seconds since 1970. */
export function clock(time_s: number): string {
  return CLOCK.format(new Date(time_s * 1000));
}

const RATE = /^\s*([0-9]+(?:[.,][0-9]+)?|[.,][0-9]+)\s*([kKmMgGtT]?)(?:bit\/s|bps|b\/s|bit)?\s*$/;

/** Read a rate as people write it ("8.5M", "8.5 Mbit/s", "8500000"); null where it is none. */
export function parseBitrate(text: string): number | null {
  const match = RATE.exec(text);
  if (!match?.[1]) return null;
  const value = Number(match[1].replace(",", "."));
  const scale = { "": 1, k: 1e3, m: 1e6, g: 1e9, t: 1e12 }[(match[2] ?? "").toLowerCase()] ?? 1;
  return Number.isFinite(value) && value > 0 ? value * scale : null;
}
