/** How full a link is, in five steps that colour, width and words tell. */

export const LEVELS = [
  { most: 0.001, text: "idle", width: 1.5 },
  { most: 0.4, text: "up to 40 %", width: 2.5 },
  { most: 0.7, text: "up to 70 %", width: 4 },
  { most: 0.9, text: "up to 90 %", width: 5.5 },
  { most: Infinity, text: "over 90 %", width: 7 },
] as const;

/** The step (0 to 4) of a utilisation. */
export function levelOf(utilisation: number): number {
  return LEVELS.findIndex((level) => utilisation <= level.most);
}
