/**
 * Stands in for `node:test` while mutants are tested: it keeps the tests of a file instead of running them once, because a process
 * runs them again for each mutant. It offers only what the listed test files use.
 */
import { mock, type TestContext } from 'node:test';

type Body = (t: TestContext) => unknown;
type Options = { skip?: boolean | string };

export interface KeptTest {
  id: string;
  body: Body;
}

/** The tests that were kept so far, and the file that is being loaded. */
export const kept = { tests: [] as KeptTest[], file: '' };

let suite = '';

export function test(name: string, ...[options, body]: [Body] | [Options, Body]): void {
  if (typeof options !== 'function' && options.skip) return;
  const id = `${kept.file}: ${suite}${name}`;
  const same = kept.tests.filter((one) => one.id.startsWith(id)).length;
  kept.tests.push({ id: same === 0 ? id : `${id} (${same + 1})`, body: body ?? (options as Body) });
}

export const it = test;

export function describe(name: string, body: () => void): void {
  suite = `${name}: `;
  body();
  suite = '';
}

/** Runs a test and what it left to do after it. */
export async function runTest({ body }: KeptTest): Promise<void> {
  const endings: (() => unknown)[] = [];
  const context = { after: (ending: () => unknown) => endings.push(ending), mock, skip: () => {} };
  try {
    await body(context as unknown as TestContext);
  } finally {
    mock.reset();
    for (const ending of endings) await ending();
  }
}
