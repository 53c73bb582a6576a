/** The continuum of a spectrum: its upper convex hull over the wavelengths (Clark and Roush 1984). In f64. */

/**
 * Returns a function that divides a spectrum by its hull, in place. The result is 1 where the spectrum touches the hull, and NaN where the
 * hull is not above 0. `wavelengths`: nm, one for each value, in any order.
 */
export function continuumRemoval(wavelengths: ArrayLike<number>): (spectrum: Float64Array) => void {
  const order = Int32Array.from(Array.from(wavelengths, (_, band) => band)).sort(
    (a, b) => wavelengths[a] - wavelengths[b] || a - b,
  );
  const x = Float64Array.from(order, (band) => wavelengths[band]);
  const y = new Float64Array(x.length);
  /** Corners of the hull, as positions in the order of wavelengths. */
  const corners = new Int32Array(x.length);
  return (spectrum) => {
    for (let i = 0; i < x.length; i++) y[i] = spectrum[order[i]];
    const count = upperHull(x, y, corners);
    for (let i = 0, corner = 0; i < x.length; i++) {
      while (corner + 2 < count && x[corners[corner + 1]] <= x[i]) corner++;
      const left = corners[corner];
      const right = corners[Math.min(corner + 1, count - 1)];
      spectrum[order[i]] =
        i === left || i === right ? ratio(y[i], y[i]) : ratio(y[i], between(x, y, left, right, x[i]));
    }
  };
}

const ratio = (value: number, hull: number) => (hull > 0 ? value / hull : NaN);

function between(x: Float64Array, y: Float64Array, left: number, right: number, at: number): number {
  const span = x[right] - x[left];
  return span === 0 ? y[left] : y[left] + (y[right] - y[left]) * ((at - x[left]) / span);
}

/** Finds the corners of the upper hull by a monotone chain (Andrew 1979). Returns their number. */
function upperHull(x: Float64Array, y: Float64Array, corners: Int32Array): number {
  let count = 0;
  for (let i = 0; i < x.length; i++) {
    // If detectors overlap, several bands may have one wavelength; the highest value counts.
    if (count > 0 && x[corners[count - 1]] === x[i]) {
      if (y[i] <= y[corners[count - 1]]) continue;
      count--;
    }
    for (; count >= 2; count--) {
      const [below, top] = [corners[count - 2], corners[count - 1]];
      const rise = (x[top] - x[below]) * (y[i] - y[below]) - (y[top] - y[below]) * (x[i] - x[below]);
      if (rise < 0) break;
    }
    corners[count++] = i;
  }
  return count;
}

/**
 * The largest depth below 1 of a spectrum without its continuum, and the shortest wavelength, nm, of that depth. The wavelength is NaN if
 * the depth is 0; both are NaN if no band has a value.
 */
export function deepestBand(
  removed: ArrayLike<number>,
  wavelengths: ArrayLike<number>,
): { depth: number; wavelength: number } {
  let least = Infinity;
  let wavelength = NaN;
  for (let band = 0; band < removed.length; band++) {
    const value = removed[band];
    if (value < least || (value === least && wavelengths[band] < wavelength)) {
      least = value;
      wavelength = wavelengths[band];
    }
  }
  if (least === Infinity) return { depth: NaN, wavelength: NaN };
  return { depth: 1 - least, wavelength: least < 1 ? wavelength : NaN };
}
