/** Rows as CSV. */
export type Rows = readonly (readonly (string | number | null)[])[];

/** CSV (RFC 4180, lines end with LF); a missing value is empty. Text that a spreadsheet would take for a formula gets an apostrophe. */
export function toCsv(rows: Rows): string {
  return `${rows.map((row) => row.map(cell).join(",")).join("\n")}\n`;
}

function cell(value: string | number | null): string {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
