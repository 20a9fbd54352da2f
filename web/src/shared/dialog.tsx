/** A question on top of the page: keyboard and focus stay in it; Escape closes it. */
import { type ComponentChildren, cloneElement, type VNode } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

export function Dialog({
  title,
  children,
  onClose,
}: {
  title: string;
  children: ComponentChildren;
  onClose: () => void;
}) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    element.current?.showModal();
  }, []);
  return (
    <dialog
      ref={element}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === element.current) onClose();
      }}
    >
      <div class="dialog">
        <header>
          <h2>{title}</h2>
          <button class="icon" aria-label="Close" onClick={onClose}>
            ×
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}

/** Completes names in the inputs whose `list` is this id. */
export function Names({ id, names }: { id: string; names: readonly string[] }) {
  return (
    <datalist id={id}>
      {names.map((name) => (
        <option key={name} value={name} />
      ))}
    </datalist>
  );
}

/** A control with its name, and a hint under it that describes it. */
export function Field({ label, hint, children }: { label: string; hint?: string; children: VNode }) {
  const id = useId();
  return (
    <div class="field">
      <label>
        <span class="field-label">{label}</span>
        {hint ? cloneElement(children, { "aria-describedby": id }) : children}
      </label>
      {hint ? (
        <span class="field-hint" id={id}>
          {hint}
        </span>
      ) : null}
    </div>
  );
}
