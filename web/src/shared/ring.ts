/** The last items of what was added: what a page keeps must not grow with the day. */
export class Ring<T> {
  #items: (T | undefined)[] = [];
  #next = 0;
  #total = 0;

  constructor(readonly capacity: number) {}

  push(item: T): void {
    this.#items[this.#next] = item;
    this.#next = (this.#next + 1) % this.capacity;
    this.#total += 1;
  }

  clear(): void {
    this.#items = [];
    this.#next = this.#total = 0;
  }

  /** How many there are. */
  get length(): number {
    return Math.min(this.#total, this.capacity);
  }

  /** How many were ever added. */
  get total(): number {
    return this.#total;
  }

  /** The newest is at 0. */
  newest(index: number): T | undefined {
    return index < this.length ? this.#items[(this.#next - 1 - index + 2 * this.capacity) % this.capacity] : undefined;
  }

  /** From the oldest to the newest. */
  toArray(): T[] {
    return Array.from({ length: this.length }, (_, index) => this.newest(this.length - 1 - index) as T);
  }
}
