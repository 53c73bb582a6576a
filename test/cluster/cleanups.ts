/** Cleanup functions that run at the end, the last one first. */
export class Cleanups {
  private readonly works: (() => unknown)[] = [];

  after(work: () => unknown): void {
    this.works.push(work);
  }

  async run(): Promise<void> {
    for (let work = this.works.pop(); work; work = this.works.pop()) await work();
  }
}
