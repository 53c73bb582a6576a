/**
 * Feeds hostile inputs to everything that reads input: `npm run test:fuzz -- --inputs 1000000 --seed 1`. Exits with 1 if there is a
 * finding: an error without a code, a crash, a hang, memory that grows, or a response of 500 or more.
 */
import { parseArgs } from 'node:util';
import { fuzz } from './run.js';
import { availableTargets, SHARES, type TargetName } from './targets.js';

const { values } = parseArgs({
  options: {
    inputs: { type: 'string', default: '100000' },
    seed: { type: 'string', default: '1' },
    target: { type: 'string' },
    first: { type: 'string' },
    help: { type: 'boolean', short: 'h' },
  },
});
const available = availableTargets();
const whole = (text: string) => (/^\d+$/.test(text) ? Number(text) : NaN);
const [inputs, seed, first] = [values.inputs, values.seed, values.first ?? '0'].map(whole) as [
  number,
  number,
  number,
];
const isWrong =
  [inputs, seed, first].some(Number.isNaN) ||
  (values.target !== undefined && !available.includes(values.target as TargetName));
if (values.help || isWrong) {
  console.log(`npm run test:fuzz -- [options]
  --inputs N      inputs in all, shared out among the targets (100000)
  --seed N        the same seed makes the same inputs (1)
  --target NAME   one target alone, which gets all inputs: ${available.join(', ')}
  --first N       number of the first input (0): with --target and --inputs 1, one input again`);
  process.exit(values.help ? 0 : 2);
}

let count = 0;
for (const target of values.target ? [values.target as TargetName] : available) {
  const share = values.target ? inputs : Math.max(1, Math.round(inputs * SHARES[target]));
  const started = performance.now();
  const { findings, limited } = await fuzz(target, seed, first, first + share);
  count += findings.length;
  const seconds = ((performance.now() - started) / 1000).toFixed(0);
  console.log(
    `${target}: ${share} inputs in ${seconds} s, ${findings.length} findings${limited > 0 ? `, ${limited} ended by a limit of time` : ''}`,
  );
  for (const { index, kind, detail } of findings)
    console.log(
      `  ${kind}: --target ${target} --seed ${seed} --first ${index} --inputs 1\n    ${detail.split('\n').slice(0, 6).join('\n    ')}`,
    );
}
process.exitCode = count > 0 ? 1 : 0;
