/** Means over seeds with their 95 % confidence intervals (Student's t), as the report has them. */
import type { Estimate } from "./rest.ts";

/** Two-sided 95 % quantiles by degrees of freedom, 1 to 30; beyond that the first terms of Cornish and Fisher's expansion. */
const T95 = [
  12.7062, 4.30265, 3.18245, 2.77645, 2.57058, 2.44691, 2.36462, 2.306, 2.26216, 2.22814, 2.20099, 2.17881, 2.16037,
  2.14479, 2.13145, 2.11991, 2.10982, 2.10092, 2.09302, 2.08596, 2.07961, 2.07387, 2.06866, 2.0639, 2.05954, 2.05553,
  2.05183, 2.04841, 2.04523, 2.04227,
];
const Z95 = 1.959964;

function t95(degrees: number): number {
  return (
    T95[degrees - 1] ??
    Z95 + (Z95 ** 3 + Z95) / (4 * degrees) + (5 * Z95 ** 5 + 16 * Z95 ** 3 + 3 * Z95) / (96 * degrees ** 2)
  );
}

export function estimate(values: readonly number[]): Estimate | null {
  if (values.length === 0) return null;
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  if (values.length === 1) return { mean, half_width: null, count: 1 };
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1);
  return { mean, half_width: t95(values.length - 1) * Math.sqrt(variance / values.length), count: values.length };
}

/** A distribution of values by weight: what `quantiles` (as many as there are steps) say of each part, put together. */
export function pooledQuantiles(parts: readonly { quantiles: readonly number[]; weight: number }[]): number[] {
  const steps = Math.max(0, ...parts.map((part) => part.quantiles.length));
  const values = parts.flatMap((part) =>
    part.quantiles.map((value) => ({ value, weight: part.weight / part.quantiles.length })),
  );
  values.sort((a, b) => a.value - b.value);
  const total = values.reduce((sum, each) => sum + each.weight, 0);
  if (steps < 2 || !(total > 0)) return [];
  let passed = 0;
  let index = 0;
  return Array.from({ length: steps }, (_, step) => {
    while (
      index < values.length - 1 &&
      passed + (values[index]?.weight ?? 0) < (step / (steps - 1)) * total * (1 - 1e-12)
    ) {
      passed += values[index]?.weight ?? 0;
      index += 1;
    }
    return values[index]?.value ?? 0;
  });
}

/** The mean over what is known at each place by the weights there; null where nothing is. */
export function weightedSeries(
  series: readonly { values: readonly (number | null)[]; weights: readonly number[] }[],
): (number | null)[] {
  const length = Math.max(0, ...series.map((each) => each.values.length));
  return Array.from({ length }, (_, index) => {
    let [sum, total] = [0, 0];
    for (const { values, weights } of series) {
      const [value, weight] = [values[index] ?? null, weights[index] ?? 0];
      if (value !== null) {
        sum += value * weight;
        total += weight;
      }
    }
    return total > 0 ? sum / total : null;
  });
}

/** The mean of what is known at each place; null where nothing is. */
export function meanSeries(series: readonly (readonly (number | null)[])[]): (number | null)[] {
  const length = Math.max(0, ...series.map((each) => each.length));
  return Array.from({ length }, (_, index) => {
    const known = series.map((each) => each[index]).filter((value): value is number => typeof value === "number");
    return known.length > 0 ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
  });
}
