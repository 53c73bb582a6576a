/**
 * Progress of an ingest. Scenes are weighted by their cells: 10 cells of a small scene are not half of the work if the other
 * scene has 5,000. A scene without a known number of cells has the mean weight of the others.
 */
export class SceneShares {
  private readonly scenes: { share: number; cells?: number }[] = [];
  /** Sums over all scenes, so that an update takes constant time. */
  private known = { scenes: 0, cells: 0, done: 0 };
  private unknownDone = 0;
  private reported = 0;

  /** Adds a scene and returns its index. */
  add(): number {
    return this.scenes.push({ share: 0 }) - 1;
  }

  setCells(index: number, cells: number): void {
    this.change(index, { ...this.scenes[index]!, cells });
  }

  /** `share`: 0 to 1. */
  setShare(index: number, share: number): void {
    this.change(index, { ...this.scenes[index]!, share: Math.round(share * SHARE_STEPS) / SHARE_STEPS });
  }

  /**
   * The completed fraction from 0 to 1, if `more` scenes are still to be found. It never decreases, although new cells lower
   * the true fraction.
   */
  overall(more: number): number {
    const { scenes, cells, done } = this.known;
    const mean = scenes > 0 ? Math.max(1, cells / scenes) : 1;
    const all = cells + (this.scenes.length - scenes + more) * mean;
    const share = all === 0 ? 0 : (done + this.unknownDone * mean) / all;
    this.reported = Math.max(this.reported, share);
    return this.reported;
  }

  private change(index: number, scene: { share: number; cells?: number }): void {
    this.count(this.scenes[index]!, -1);
    this.count(scene, 1);
    this.scenes[index] = scene;
  }

  private count({ share, cells }: { share: number; cells?: number }, sign: 1 | -1): void {
    if (cells === undefined) this.unknownDone += sign * share;
    else {
      this.known.scenes += sign;
      this.known.cells += sign * cells;
      this.known.done += sign * share * cells;
    }
  }
}

/** Sums of integer multiples of 1 / SHARE_STEPS are exact, so no rounding errors add up. */
const SHARE_STEPS = 2 ** 20;
