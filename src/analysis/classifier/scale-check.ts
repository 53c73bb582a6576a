import { otherScale } from '../errors.js';

/**
 * Brightest bands that differ by more are values of another scale. Water and snow differ by less from the mean of land; percent, and
 * reflectance stored as whole numbers, are 100 and 10,000 times as large.
 */
const MOST = 50;

/**
 * Detects spectra of another scale than those that a classifier was trained on: its map of them would be wrong, and nothing would show it.
 * `centre`: the mean of each band over the training pixels.
 */
export class ScaleCheck {
  private readonly sums: Float64Array;
  private count = 0;

  constructor(private readonly centre: ArrayLike<number>) {
    this.sums = new Float64Array(centre.length);
  }

  /** Adds a pixel by the physical value of each band. */
  add(physical: (band: number) => number): void {
    for (let band = 0; band < this.sums.length; band++) this.sums[band]! += physical(band);
    this.count++;
  }

  /** Throws TW_ANALYSIS_OTHER_SCALE. Spectra that are nowhere positive have no scale that could be compared. */
  finish(): void {
    if (this.count === 0) return;
    const found = Math.max(...this.sums) / this.count;
    const trained = Math.max(...Array.from(this.centre));
    if (found <= 0 || trained <= 0) return;
    if (found > MOST * trained || found < trained / MOST) throw otherScale(found, trained);
  }
}
