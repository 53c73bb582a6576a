/** `npm run test:cluster`: real nodes under faults; see docs/development/testing.md. */
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
import { DerivedScenes } from './derived-scenes.js';
import { faults } from './faults/index.js';
import type { Event } from './history.js';
import { bestNetwork, type NetworkKind } from './network/open.js';
import { Random } from './random.js';
import { runScenario } from './run-scenario.js';
import { allPairs, namedPairs, pairOf, type ScenarioFaultPair } from './scenario-fault-pairs.js';
import { scenarios } from './scenarios/index.js';
import { Deliveries } from './scene-deliveries.js';
import { Server } from './server.js';
import { soak } from './soak.js';

/** Maximum number of printed violations of one pair, and of events of each. */
const MOST_VIOLATIONS = 5;
const MOST_EVENTS = 12;

const { values: flags } = parseArgs({
  options: {
    seed: { type: 'string' },
    hours: { type: 'string' },
    pairs: { type: 'string' },
    'first-seed': { type: 'string' },
    soak: { type: 'string' },
    only: { type: 'string' },
    keep: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    network: { type: 'string' },
    together: { type: 'string', default: '2' },
    logs: { type: 'string', default: 'tilewright-faults' },
    help: { type: 'boolean', default: false },
  },
});

const HELP = `usage: npm run test:cluster -- [options]

  --seed N        seed of the named pairs of a scenario and a fault; random by default
  --hours N       look for violations for N hours: random pairs, each with its own seed
  --pairs N       the same for N pairs
  --first-seed N  seed of the first random pair
  --soak N        run a cluster under a constant load for N hours and check that nothing grows
  --only TEXT     pairs whose name contains the text
  --list          print the pairs and exit
  --network KIND  namespaces or loopback; by default namespaces if this user may create them
  --together N    pairs that run at the same time; 2 by default
  --logs FOLDER   folder for the logs of failed pairs; tilewright-faults by default
  --keep          keep the logs of all pairs
  --help          print this text and exit

docs/development/testing.md explains how to read a violation.`;

if (flags.help) {
  console.log(HELP);
  process.exit(0);
}

// Every server and network ends with this process.
process.setMaxListeners(0);
// Exits through the `exit` handlers, which stop servers and networks.
for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)
  process.once(signal, () => process.exit(code));

if (flags.list) list();
else if (noEtcd) {
  console.log(`nothing can run: ${noEtcd}`);
  console.log(`0 passed, 0 failed, ${namedPairs.length} skipped`);
} else if (flags.soak !== undefined) await runSoak(Number(flags.soak));
else await run();

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

interface Prepared {
  work: string;
  scenes: string;
  deliveries: Deliveries;
  layers: DerivedScenes;
  network: NetworkKind;
}

/** Creates a folder and the resources that all runs share, and removes the folder afterwards. */
async function withPrepared(does: (prepared: Prepared) => Promise<void>): Promise<void> {
  const work = await mkdtemp(join(tmpdir(), 'tilewright-faults-'));
  const clear = () => rmSync(work, { recursive: true, force: true });
  process.once('exit', clear);
  try {
    const scenes = join(work, 'scenes');
    const network = (flags.network ?? bestNetwork()) as NetworkKind;
    await does({ work, scenes, network, ...(await makeDeliveries(work, scenes)) });
  } finally {
    clear();
  }
}

const randomSeed = () => Math.floor(Math.random() * 2 ** 31);

async function run(): Promise<void> {
  const together = Number(flags.together);
  const logs = join(process.cwd(), flags.logs);
  const counts = { passed: 0, failed: 0, skipped: 0 };
  const began = performance.now();
  const seeds: number[] = [];
  await withPrepared(async ({ work, ...prepared }) => {
    console.log(`network of ${prepared.network}, ${together} pairs at a time`);
    const queue = pairsToRun();
    const runOn = async () => {
      for (const { pair, seed } of queue) {
        seeds.push(seed);
        const impossible = pair.fault.impossible?.();
        if (impossible) {
          console.log(`skip ${pair.name.padEnd(26)} seed ${seed}: ${impossible}`);
          counts.skipped++;
          continue;
        }
        const folder = join(work, `${pair.name}-${seed}`);
        const began = performance.now();
        const { violations, history, summary } = await runScenario({ ...prepared, pair, seed, folder });
        const seconds = ((performance.now() - began) / 1000).toFixed(0);
        const isRight = violations.length === 0;
        console.log(
          `${isRight ? 'ok  ' : 'FAIL'} ${pair.name.padEnd(26)} seed ${`${seed}`.padEnd(10)} ${seconds.padStart(4)} s  ${summary}`,
        );
        counts[isRight ? 'passed' : 'failed']++;
        if (!isRight || flags.keep) {
          const kept = join(logs, `${pair.name}-${seed}`);
          await keep(folder, kept);
          await history.save(join(kept, 'history.jsonl'));
          console.log(`     replay: npm run test:cluster -- --only ${pair.name} --seed ${seed}`);
          console.log(`     logs and history: ${kept}`);
          await explain(violations, join(kept, 'violations.json'));
        }
        await rm(folder, { recursive: true, force: true });
      }
    };
    await Promise.all(Array.from({ length: together }, runOn));
  });
  const minutes = ((performance.now() - began) / 60_000).toFixed(1);
  const range = seeds.length > 0 ? `${Math.min(...seeds)} to ${Math.max(...seeds)}` : 'none';
  console.log(`seeds ${range}; ${minutes} minutes`);
  const { passed, failed, skipped } = counts;
  console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
  if (failed > 0) process.exitCode = 1;
}

async function runSoak(hours: number): Promise<void> {
  const seed = flags.seed === undefined ? randomSeed() : Number(flags.seed);
  await withPrepared(async ({ work, ...prepared }) => {
    console.log(`seed ${seed}, network of ${prepared.network}, ${hours} hours`);
    const { violations, flatness } = await soak({
      ...prepared,
      hours,
      seed,
      folder: join(work, 'soak'),
      log: (line) => console.log(line),
      kept: join(process.cwd(), flags.logs, `soak-${seed}`),
    });
    for (const { name, median, growth, allowed, isFlat } of flatness) {
      const [is, by, most] = [median, growth, allowed].map((value) => value.toFixed(1));
      console.log(
        `${isFlat ? 'flat ' : 'GROWS'} ${name.padEnd(18)} median ${is}, growth ${by} of ${most} allowed`,
      );
    }
    const growing = flatness.filter(({ isFlat }) => !isFlat).length;
    console.log(`${violations.length} violations, ${growing} of ${flatness.length} measures grow`);
    if (violations.length + growing > 0) process.exitCode = 1;
  });
}

/** The pairs of this run, one after another. */
function* pairsToRun(): Generator<{ pair: ScenarioFaultPair; seed: number }> {
  const { only, hours, pairs } = flags;
  const wanted = only?.split(',').map((name) => {
    const pair = pairOf(name);
    if (!pair)
      throw new Error(`there is no pair ${name}; --list names scenarios and faults, as in join+kill`);
    return pair;
  });
  if (hours === undefined && pairs === undefined) {
    const seed = flags.seed === undefined ? randomSeed() : Number(flags.seed);
    for (const pair of wanted ?? namedPairs) yield { pair, seed };
    return;
  }
  // The seed of a pair also chooses the pair, so a list of seeds is a list of pairs.
  const first = flags['first-seed'] === undefined ? randomSeed() : Number(flags['first-seed']);
  const end = performance.now() + Number(hours ?? Infinity) * 3_600_000;
  for (let n = 0; n < Number(pairs ?? Infinity) && performance.now() < end; n++) {
    const seed = first + n;
    yield { pair: new Random(seed).pick(wanted ?? allPairs), seed };
  }
}

/** Lets a single node ingest everything that writers will deliver. */
async function makeDeliveries(
  work: string,
  scenes: string,
): Promise<{ deliveries: Deliveries; layers: DerivedScenes }> {
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
    return { deliveries, layers: await DerivedScenes.make(join(scenes, 'layers'), url) };
  } finally {
    await cleanups.run();
  }
}

/** Keeps the logs of the nodes; their data is of no use without them. */
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
