/**
 * Mutation tests of one part: `npm run test:mutation -- geocode`. Stryker changes the compiled files of the part, one place at a time, and
 * runs the tests that reach it: a change that no test notices is a gap in the tests. The report is `reports/mutation/PART.json`.
 */
import { setPriority } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Stryker } from '@stryker-mutator/core';
import { PARTS } from './parts.js';

/** The command shares the machine with other work; child processes inherit the priority. */
setPriority(10);

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    mutate: { type: 'string', multiple: true },
    share: { type: 'string', default: '1' },
    seed: { type: 'string', default: '1' },
    concurrency: { type: 'string', default: '2' },
    help: { type: 'boolean', short: 'h' },
  },
});
const [name] = positionals;
const part = PARTS[name];
if (values.help || part === undefined || positionals.length > 1) {
  console.log(`npm run test:mutation -- PART [options]
  PART              ${Object.keys(PARTS).join(', ')}
  --mutate PATTERN  instead of all files of the part: compiled files, or lines of one, for example
                    src/grid/region-coverer.js:10-40 (relative to dist; repeatable)
  --share N         a random share of the mutants, 0 to 1 (1)
  --seed N          the same seed picks the same mutants (1)
  --concurrency N   processes that run tests (2)`);
  process.exit(values.help ? 0 : 2);
}

const share = Number(values.share);
const inDist = (pattern: string) => `dist/${pattern}`;
const plugin = (file: string) => fileURLToPath(new URL(`./${file}.js`, import.meta.url));
const results = await new Stryker({
  configFile: 'test/mutation/stryker.config.json',
  mutate: (values.mutate ?? part.mutate).map(inDist),
  nodeTest: {
    testFiles: part.tests.map((test) => `dist/test/${test}.test.js`),
    leaveOut: part.leaveOut ?? [],
  },
  plugins: [plugin('runner'), plugin('sample')],
  ...(share < 1 && { checkers: ['sample'], sample: { share, seed: Number(values.seed) } }),
  concurrency: Number(values.concurrency),
  tempDirName: `.stryker-tmp/${name}`,
  jsonReporter: { fileName: `reports/mutation/${name}.json` },
}).runMutationTest();

const count = (...states: string[]) => results.filter(({ status }) => states.includes(status)).length;
const detected = count('Killed', 'Timeout');
const valid = detected + count('Survived', 'NoCoverage');
console.log(`${name}: ${detected} of ${valid} mutants detected, ${((100 * detected) / valid).toFixed(1)} %`);
