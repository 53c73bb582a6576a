/**
 * How much of an ingest is done. Scenes weigh by their cells: 10 cells of a small scene are not half of the work if the other scene has
 * 5,000. A scene without a known number of cells weighs as much as the mean of the others.
 */
export class SceneShares {
  private readonly scenes: { share: number; cells?: number }[] = [];

  /** Adds a scene of which nothing is done. Returns its place. */
  add(): number {
    return this.scenes.push({ share: 0 }) - 1;
  }

  setCells(place: number, cells: number): void {
    this.scenes[place]!.cells = cells;
  }

  /** `share`: 0 to 1. */
  setShare(place: number, share: number): void {
    this.scenes[place]!.share = share;
  }

  /** From 0 to 1, if `more` scenes are still to be found. */
  overall(more: number): number {
    const known = this.scenes.flatMap(({ cells }) => (cells === undefined ? [] : [cells]));
    const mean = known.length > 0 ? Math.max(1, sum(known) / known.length) : 1;
    const weights = this.scenes.map(({ cells }) => cells ?? mean);
    const all = sum(weights) + more * mean;
    return all === 0 ? 0 : sum(this.scenes.map(({ share }, place) => share * weights[place]!)) / all;
  }
}

const sum = (numbers: number[]) => numbers.reduce((total, one) => total + one, 0);
