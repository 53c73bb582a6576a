/** `npm run test:cluster`: real nodes under faults. docs/TESTING.md says how. */
import { rmSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { noEtcd } from '../support/etcd.js';
import { freePort } from '../support/s3.js';
import type { Violation } from './checkers.js';
import { Cleanups } from './cleanups.js';
import { ask, TOKEN, until } from './client.js';
import { Deliveries } from './deliveries.js';
import { faults } from './faults/index.js';
import type { Event } from './history.js';
import { Layers } from './layers.js';
import { bestNetwork, type NetworkKind } from './network/open.js';
import { allPairs, namedPairs, type Pair, pairOf } from './pairs.js';
import { Random } from './random.js';
import { runPair } from './run-pair.js';
import { scenarios } from './scenarios/index.js';
import { Server } from './server.js';

/** Violations of one pair that are printed, and events of each. */
const MOST_VIOLATIONS = 5;
const MOST_EVENTS = 12;

const { values: flags } = parseArgs({
  options: {
    seed: { type: 'string' },
    hours: { type: 'string' },
    only: { type: 'string' },
    keep: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    network: { type: 'string' },
    together: { type: 'string', default: '2' },
    logs: { type: 'string', default: 'tilewright-faults' },
  },
});

// Servers and networks each end with this process.
process.setMaxListeners(0);
// So that what is to be done at the end is done: servers end, and networks go.
for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)
  process.once(signal, () => process.exit(code));

if (flags.list) list();
else if (noEtcd) {
  console.log(`nothing can run: ${noEtcd}`);
  console.log(`0 passed, 0 failed, ${namedPairs.length} skipped`);
} else await run();

function list(): void {
  for (const [title, all] of [
    ['scenarios', scenarios],
    ['faults', faults],
  ] as const) {
    console.log(`${title}:`);
    for (const { name, what } of all) console.log(`  ${name.padEnd(14)}${what}`);
  }
  console.log(`pairs of every run:\n  ${namedPairs.map(({ name }) => name).join('\n  ')}`);
}

async function run(): Promise<void> {
  const seed = flags.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(flags.seed);
  const network = (flags.network ?? bestNetwork()) as NetworkKind;
  const together = Number(flags.together);
  const logs = join(process.cwd(), flags.logs);
  const work = await mkdtemp(join(tmpdir(), 'tilewright-faults-'));
  const clear = () => rmSync(work, { recursive: true, force: true });
  process.once('exit', clear);
  const counts = { passed: 0, failed: 0 };
  try {
    console.log(`seed ${seed}, network of ${network}, ${together} pairs at a time`);
    const scenes = join(work, 'scenes');
    const { deliveries, layers } = await makeDeliveries(work, scenes);
    const queue = pairsToRun(seed);
    const runOn = async () => {
      for (const next of queue) {
        const folder = join(work, `${next.pair.name}-${next.seed}`);
        const began = performance.now();
        const { violations, history, summary } = await runPair({
          ...next,
          folder,
          deliveries,
          layers,
          scenes,
          network,
        });
        const seconds = ((performance.now() - began) / 1000).toFixed(0);
        const isRight = violations.length === 0;
        console.log(
          `${isRight ? 'ok  ' : 'FAIL'} ${next.pair.name.padEnd(26)} ${seconds.padStart(4)} s  ${summary}`,
        );
        counts[isRight ? 'passed' : 'failed']++;
        if (!isRight || flags.keep) {
          const kept = join(logs, `${next.pair.name}-${next.seed}`);
          await keep(folder, kept);
          await history.save(join(kept, 'history.jsonl'));
          console.log(`     replay: npm run test:cluster -- --only ${next.pair.name} --seed ${next.seed}`);
          console.log(`     logs and history: ${kept}`);
          await explain(violations, join(kept, 'violations.json'));
        }
        await rm(folder, { recursive: true, force: true });
      }
    };
    await Promise.all(Array.from({ length: together }, runOn));
  } finally {
    clear();
  }
  console.log(`${counts.passed} passed, ${counts.failed} failed`);
  if (counts.failed > 0) process.exitCode = 1;
}

/** The pairs of this run, one after another, for whoever asks next. */
function* pairsToRun(seed: number): Generator<{ pair: Pair; seed: number }> {
  const { only, hours } = flags;
  const wanted = only?.split(',').map((name) => {
    const pair = pairOf(name);
    if (!pair)
      throw new Error(`there is no pair ${name}; --list names scenarios and faults, as in join+kill`);
    return pair;
  });
  if (hours === undefined) {
    for (const pair of wanted ?? namedPairs) yield { pair, seed };
    return;
  }
  const random = new Random(seed);
  const end = performance.now() + Number(hours) * 3_600_000;
  while (performance.now() < end)
    yield { pair: random.pick(wanted ?? allPairs), seed: random.below(2 ** 31) };
}

/** Has one node that is alone ingest all that writers will deliver. */
async function makeDeliveries(
  work: string,
  scenes: string,
): Promise<{ deliveries: Deliveries; layers: Layers }> {
  const cleanups = new Cleanups();
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  await mkdir(scenes, { recursive: true });
  const where = ['--data', join(work, 'alone'), '--port', `${port}`, '--token', TOKEN, '--rate-limit', '0'];
  const args = ['serve', ...where, '--allow-folder', scenes, '--reserve', '0'];
  const server = new Server({ args, env: {}, wrapper: [], log: join(work, 'alone.log') });
  server.start();
  cleanups.after(() => server.stop('SIGKILL'));
  try {
    await until('a node that is alone answers', 60_000, async () => (await ask(url, '/health')).ok);
    const deliveries = await Deliveries.make(scenes, url);
    return { deliveries, layers: await Layers.make(join(scenes, 'layers'), url) };
  } finally {
    await cleanups.run();
  }
}

/** The logs of the nodes; their data is of no use without them. */
async function keep(folder: string, kept: string): Promise<void> {
  await mkdir(kept, { recursive: true });
  for (const entry of await readdir(folder))
    if (entry.endsWith('.log')) await copyFile(join(folder, entry), join(kept, entry));
}

async function explain(violations: Violation[], path: string): Promise<void> {
  await writeFile(path, JSON.stringify(violations, null, 1));
  for (const { rule, detail, events } of violations.slice(0, MOST_VIOLATIONS)) {
    console.log(`     broken: ${rule}: ${detail}`);
    for (const event of events.slice(-MOST_EVENTS)) console.log(`       ${short(event)}`);
  }
  const more = violations.length - MOST_VIOLATIONS;
  if (more > 0) console.log(`     and ${more} more in ${path}`);
}

function short(event: Event): string {
  switch (event.kind) {
    case 'write':
      return `${event.invoked} to ${event.ended} ms: write of ${event.scene} as ${event.to} by ${event.node}: ${event.outcome}${event.why ? ` (${event.why.slice(0, 300)})` : ''}`;
    case 'read':
      return `${event.invoked} to ${event.ended} ms: read by ${event.node}: ${event.returned} of ${event.matched} tiles, ${JSON.stringify(event.scenes).slice(0, 400)}`;
    default:
      return JSON.stringify(event).slice(0, 500);
  }
}
