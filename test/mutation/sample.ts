/**
 * A checker of Stryker that lets a random share of the mutants pass. The others are reported as compile errors, which no score
 * counts: Stryker has no option for a sample.
 */
import { createHash } from 'node:crypto';

export interface SampleOptions {
  /** 0 to 1. */
  share: number;
  seed: number;
}

class SampleChecker {
  static readonly inject = ['options'] as const;

  constructor(private readonly options: { sample: SampleOptions }) {}

  async init(): Promise<void> {}

  async check(mutants: { id: string }[]) {
    const { share, seed } = this.options.sample;
    const isPicked = (id: string) =>
      createHash('sha256').update(`${seed} ${id}`).digest().readUInt32LE() < share * 2 ** 32;
    return Object.fromEntries(
      mutants.map(({ id }) => [
        id,
        isPicked(id) ? { status: 'passed' } : { status: 'compileError', reason: 'not in the sample' },
      ]),
    );
  }
}

export const strykerPlugins = [{ kind: 'Checker', name: 'sample', injectableClass: SampleChecker }];
