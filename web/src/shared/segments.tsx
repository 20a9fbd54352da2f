/** A few buttons of which one is pressed. */
export interface Segment {
  id: string;
  title: string;
  hint?: string;
  isDisabled?: boolean;
}

interface SegmentsProps<Id extends string> {
  label: string;
  segments: readonly (Segment & { id: Id })[];
  current: Id;
  onChange: (id: Id) => void;
}

export function Segments<Id extends string>({ label, segments, current, onChange }: SegmentsProps<Id>) {
  return (
    <div class="segments" role="group" aria-label={label}>
      {segments.map(({ id, title, hint, isDisabled }) => (
        <button key={id} aria-pressed={id === current} disabled={isDisabled} title={hint} onClick={() => onChange(id)}>
          {title}
        </button>
      ))}
    </div>
  );
}
