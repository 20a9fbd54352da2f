/** A table of any length: only the rows that are seen are there. */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

export interface Column<Row> {
  key: string;
  title: string;
  /** What a title is short for. */
  hint?: string;
  render: (row: Row) => ComponentChildren;
  /** What rows are sorted by; without it they can't be. */
  sort?: (row: Row) => number | string;
  /** As a CSS grid has it. */
  width: string;
  isNumber?: boolean;
  /** Left out where the table is narrow. */
  isExtra?: boolean;
}

export interface TableProps<Row> {
  label: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  id: (row: Row) => string;
  selected?: string | null;
  onSelect?: (row: Row) => void;
  /** Shown where there are no rows. */
  empty: ComponentChildren;
}

const ROW_PX = 38;
const SPARE_ROWS = 6;
const NARROW_PX = 560;

interface Order {
  key: string;
  isDescending: boolean;
}

export function Table<Row>(props: TableProps<Row>) {
  const scroller = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600, width: 1000 });
  const [order, setOrder] = useState<Order | null>(null);
  // Before the first picture: a narrow table never shows the columns of a wide one.
  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element) return undefined;
    const look = (): void =>
      setView((before) => {
        const now = { top: element.scrollTop, height: element.clientHeight, width: element.clientWidth };
        return before.top === now.top && before.height === now.height && before.width === now.width ? before : now;
      });
    const resized = new ResizeObserver(look);
    resized.observe(element);
    element.addEventListener("scroll", look, { passive: true });
    look();
    return () => {
      resized.disconnect();
      element.removeEventListener("scroll", look);
    };
  }, []);

  const columns = view.width < NARROW_PX ? props.columns.filter((column) => !column.isExtra) : props.columns;
  const template: Record<string, string> = { gridTemplateColumns: columns.map((column) => column.width).join(" ") };
  const rows = sorted(props.rows, props.columns, order);
  const first = Math.max(0, Math.floor(view.top / ROW_PX) - SPARE_ROWS);
  const last = Math.min(rows.length, Math.ceil((view.top + view.height) / ROW_PX) + SPARE_ROWS);
  const chosen = rows.findIndex((row) => props.id(row) === props.selected);
  const choose = (index: number): void => {
    const row = rows[Math.min(rows.length - 1, Math.max(0, index))];
    if (row === undefined || !scroller.current) return;
    const at = rows.indexOf(row) * ROW_PX;
    if (at < scroller.current.scrollTop) scroller.current.scrollTop = at;
    else if (at + 2 * ROW_PX > scroller.current.scrollTop + scroller.current.clientHeight)
      scroller.current.scrollTop = at + 2 * ROW_PX - scroller.current.clientHeight;
    props.onSelect?.(row);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if ((event.target as HTMLElement).closest("button")) return;
    const page = Math.max(1, Math.floor(view.height / ROW_PX) - 2);
    const to = {
      ArrowDown: chosen + 1,
      ArrowUp: chosen - 1,
      PageDown: chosen + page,
      PageUp: chosen - page,
      Home: 0,
      End: rows.length - 1,
    }[event.key];
    if (to === undefined || rows.length === 0) return;
    event.preventDefault();
    choose(to);
  };
  const turn = (key: string): void =>
    setOrder((now) =>
      now?.key !== key ? { key, isDescending: false } : now.isDescending ? null : { key, isDescending: true },
    );

  return (
    <div
      class="table"
      ref={scroller}
      role="grid"
      aria-label={props.label}
      aria-rowcount={rows.length + 1}
      aria-readonly="true"
      tabIndex={0}
      onKeyDown={onKeyDown}
    >
      <div class="table-head" role="row" aria-rowindex={1} style={template}>
        {columns.map((column) => (
          <div
            key={column.key}
            role="columnheader"
            class={column.isNumber ? "number" : ""}
            {...(column.sort ? { "aria-sort": ariaSort(order, column.key) } : {})}
          >
            {column.sort ? (
              <button
                class="sort"
                title={column.hint ?? `Sort by ${column.title.toLowerCase()}`}
                onClick={() => turn(column.key)}
              >
                {column.title}
                <span aria-hidden="true" class="sort-mark">
                  {order?.key === column.key ? (order.isDescending ? "↓" : "↑") : ""}
                </span>
              </button>
            ) : (
              <span title={column.hint}>{column.title}</span>
            )}
          </div>
        ))}
      </div>
      {rows.length === 0 ? (
        <div role="row" class="table-empty">
          <div role="gridcell">{props.empty}</div>
        </div>
      ) : (
        <div class="table-body" role="rowgroup" style={{ height: `${rows.length * ROW_PX}px` }}>
          {rows.slice(first, last).map((row, offset) => {
            const id = props.id(row);
            return (
              <div
                key={id}
                role="row"
                aria-rowindex={first + offset + 2}
                aria-selected={id === props.selected}
                class="table-row"
                onClick={() => props.onSelect?.(row)}
                style={{ ...template, transform: `translateY(${(first + offset) * ROW_PX}px)` }}
              >
                {columns.map((column) => (
                  <div key={column.key} role="gridcell" class={column.isNumber ? "number" : ""}>
                    {column.render(row)}
                  </div>
                ))}
              </div>
            );
          })}
        </div>
      )}
    </div>
  );
}

function ariaSort(order: Order | null, key: string): "none" | "ascending" | "descending" {
  return order?.key !== key ? "none" : order.isDescending ? "descending" : "ascending";
}

const COLLATOR = new Intl.Collator("en", { numeric: true });

function sorted<Row>(rows: readonly Row[], columns: readonly Column<Row>[], order: Order | null): readonly Row[] {
  const by = columns.find((column) => column.key === order?.key)?.sort;
  if (!by || !order) return rows;
  const sign = order.isDescending ? -1 : 1;
  return rows
    .map((row) => ({ row, value: by(row) }))
    .sort(
      (a, b) =>
        sign *
        (typeof a.value === "string" && typeof b.value === "string"
          ? COLLATOR.compare(a.value, b.value)
          : Number(a.value) - Number(b.value)),
    )
    .map(({ row }) => row);
}
