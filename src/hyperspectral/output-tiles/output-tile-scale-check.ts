import { otherScale } from '../errors.js';

/** Reflectance is at most about 1, and a little more in glint and on slopes. */
const MAX_REFLECTANCE = 2;
/** Means of water and snow differ from that of land by smaller factors. */
const MAX_MEAN_RATIO = 50;

/**
 * Detects that a classifier was trained on reflectance and is applied to larger numbers, such as reflectance times 10,000, or vice versa.
 * Its map would be wrong without a visible sign. `centre`: the mean of each band over the training pixels.
 */
export class ScaleCheck {
  private readonly sums: Float64Array;
  private count = 0;

  constructor(private readonly centre: ArrayLike<number>) {
    this.sums = new Float64Array(centre.length);
  }

  /** Adds the physical values of a pixel. */
  add(spectrum: ArrayLike<number>): void {
    for (let band = 0; band < this.sums.length; band++) this.sums[band] += spectrum[band];
    this.count++;
  }

  /** Throws TW_ANALYSIS_OTHER_SCALE. Does nothing if no band has a positive mean. */
  finish(): void {
    const found = Math.max(...this.sums) / this.count;
    const trained = Math.max(...Array.from(this.centre));
    const least = Math.min(found, trained);
    const most = Math.max(found, trained);
    if (least > 0 && least <= MAX_REFLECTANCE && most > MAX_REFLECTANCE && most > MAX_MEAN_RATIO * least)
      throw otherScale(found, trained);
  }
}
