/**
 * A test runner of Stryker for tests of `node:test`. It loads the test files once and runs the tests that reach a mutant, one after
 * another, in its own process. A process for each test file and mutant, as the tap runner starts it, takes ten times as long.
 */
import { register } from 'node:module';
import { relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { InstrumenterContext } from '@stryker-mutator/api/core';
import type {
  DryRunOptions,
  DryRunResult,
  MutantRunOptions,
  MutantRunResult,
  TestResult,
} from '@stryker-mutator/api/test-runner';
import {
  DryRunStatus,
  determineHitLimitReached,
  TestStatus,
  toMutantRunResult,
} from '@stryker-mutator/api/test-runner';
import { kept, runTest } from './node-test.js';

export interface RunnerOptions {
  /** Paths from the repository's root. */
  testFiles: string[];
  /** Words of the names of tests that do not run. */
  leaveOut: string[];
}

/** Read by the code that Stryker has instrumented, which keeps the object. */
const state: InstrumenterContext = {};
Object.assign(globalThis, { __stryker__: state });

class NodeTestRunner {
  static readonly inject = ['options'] as const;
  private isLoaded = false;

  constructor(private readonly options: { nodeTest: RunnerOptions }) {}

  /** Files that were imported stay so: for a mutant in code that runs on import, Stryker starts another process. */
  capabilities() {
    return { reloadEnvironment: false };
  }

  async dryRun({ disableBail }: DryRunOptions): Promise<DryRunResult> {
    await this.load();
    const result = await this.run(undefined, disableBail);
    return { ...result, mutantCoverage: state.mutantCoverage ?? { static: {}, perTest: {} } };
  }

  async mutantRun(options: MutantRunOptions): Promise<MutantRunResult> {
    const { activeMutant, mutantActivation, testFilter, hitLimit, disableBail } = options;
    if (mutantActivation === 'runtime') await this.load();
    Object.assign(state, {
      activeMutant: activeMutant.id,
      hitLimit,
      hitCount: hitLimit === undefined ? undefined : 0,
    });
    try {
      await this.load();
      const result = await this.run(testFilter, disableBail);
      return toMutantRunResult(determineHitLimitReached(state.hitCount, hitLimit) ?? result);
    } catch (error) {
      // The mutant stopped a file from being loaded.
      const [{ id }] = kept.tests.length > 0 ? kept.tests : [{ id: 'import' }];
      return toMutantRunResult({ status: DryRunStatus.Complete, tests: [failed(id, 0, error)] });
    } finally {
      state.activeMutant = undefined;
    }
  }

  private async load(): Promise<void> {
    if (this.isLoaded) return;
    this.isLoaded = true;
    register('./hooks.js', import.meta.url);
    for (const file of this.options.nodeTest.testFiles) {
      kept.file = relative('dist/test', file);
      await import(pathToFileURL(file).href);
    }
    const { leaveOut } = this.options.nodeTest;
    kept.tests = kept.tests.filter(({ id }) => !leaveOut.some((words) => id.includes(words)));
  }

  private async run(filter: string[] | undefined, disableBail: boolean) {
    const tests: TestResult[] = [];
    for (const test of kept.tests) {
      if (filter && !filter.includes(test.id)) continue;
      const started = performance.now();
      const spent = () => performance.now() - started;
      state.currentTestId = test.id;
      try {
        await runTest(test);
        tests.push({ ...named(test.id, spent()), status: TestStatus.Success });
      } catch (error) {
        tests.push(failed(test.id, spent(), error));
        if (!disableBail) break;
      } finally {
        state.currentTestId = undefined;
      }
    }
    return { status: DryRunStatus.Complete as const, tests };
  }
}

const named = (id: string, timeSpentMs: number) => ({ id, name: id, timeSpentMs });

const failed = (id: string, timeSpentMs: number, error: unknown): TestResult => ({
  ...named(id, timeSpentMs),
  status: TestStatus.Failed,
  failureMessage: String(error),
});

export const strykerPlugins = [{ kind: 'TestRunner', name: 'node-test', injectableClass: NodeTestRunner }];
