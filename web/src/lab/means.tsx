/** Means over seeds with their intervals: a table that is saved as CSV with all digits. */
import type { ComponentChildren } from "preact";
import { Card } from "../shared/card.tsx";
import { type Column, Table } from "../shared/table.tsx";
import { saveCsv } from "./export.ts";
import type { Estimate } from "./rest.ts";

interface NamedColumn {
  title: string;
  hint?: string;
  /** In the file. */
  column: string;
  isExtra?: boolean;
}

export interface PlainColumn<Row> extends NamedColumn {
  of: (row: Row) => string | number;
  render?: (row: Row) => ComponentChildren;
  width: string;
  isNumber?: boolean;
}

export interface MeanColumn<Row> extends NamedColumn {
  of: (row: Row) => Estimate | null;
  format: (value: number) => string;
  /** Share of the room. */
  share?: number;
}

interface MeansProps<Row> {
  /** Of the file, without ending. */
  name: string;
  rows: readonly Row[];
  plain: readonly PlainColumn<Row>[];
  means: readonly MeanColumn<Row>[];
}

const ROW_PX = 38;
const MOST_ROWS = 13;

/** A mean with its interval in one unit, as "8.50 ± 0.01 Mbit/s". */
function within(estimated: Estimate | null, format: (value: number) => string): string {
  if (!estimated) return "–";
  const [number = "", unit = ""] = format(estimated.mean).split(" ");
  if (estimated.half_width === null || Number.isNaN(Number(number))) return format(estimated.mean);
  const scale = Number(number) === 0 ? 1 : estimated.mean / Number(number);
  const decimals = number.split(".")[1]?.length ?? 0;
  return `${number} ± ${(estimated.half_width / scale).toFixed(decimals)} ${unit}`;
}

function csvRows<Row>({ rows, plain, means }: MeansProps<Row>): (string | number | null)[][] {
  const head = [
    ...plain.map(({ column }) => column),
    ...means.flatMap(({ column }) => [column, `${column}_half_width`]),
  ];
  const values = (estimated: Estimate | null) => [estimated?.mean ?? null, estimated?.half_width ?? null];
  return [
    head,
    ...rows.map((row) => [...plain.map(({ of }) => of(row)), ...means.flatMap(({ of }) => values(of(row)))]),
  ];
}

export function Means<Row>(props: MeansProps<Row>) {
  const { name, rows, plain, means } = props;
  const columns = [
    ...plain.map((each): Column<Row> => ({ render: each.of, ...each, key: each.column, sort: each.of })),
    ...means.map(
      ({ of, format, share = 1.5, ...each }): Column<Row> => ({
        ...each,
        key: each.column,
        width: `minmax(0, ${share}fr)`,
        isNumber: true,
        render: (row) => within(of(row), format),
        sort: (row) => of(row)?.mean ?? Infinity,
      }),
    ),
  ];
  return (
    <Card
      title="Means over seeds"
      class="figure wide"
      note={<span class="quiet">± 95 % interval of the mean</span>}
      tools={
        <div class="exports">
          <button class="export" aria-label="Save the table as CSV" onClick={() => saveCsv(name, csvRows(props))}>
            CSV
          </button>
        </div>
      }
    >
      <div class="means" style={{ height: `${Math.min(MOST_ROWS, rows.length + 1) * ROW_PX + 4}px` }}>
        <Table
          label="Means over seeds"
          rows={rows}
          id={(row) => plain.map(({ of }) => of(row)).join(" ")}
          empty="Nothing was measured."
          columns={columns}
        />
      </div>
    </Card>
  );
}
