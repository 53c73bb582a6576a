/**
 * `freshness`: generated places with two years of dates, half of which change in the second year. Models are trained on the first year.
 * `check` then goes through the dates of the second year; `train --stale` is compared with a new training of everything at every date.
 * TILEWRIGHT_BENCH_ONLY=detection leaves out the trainings of the second year, which take most of the time.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  canChange,
  type LandChange,
  REGIONS,
  type SeriesDate,
  seriesLandscape,
  writeSentinelLikeSeries,
} from '../../data-samples/index.js';
import { inProcessTransport } from '../../src/cli/connection.js';
import { Client } from '../../src/client/index.js';
import { geohash } from '../../src/grid/index.js';
import { openNode, type TilewrightNode } from '../../src/node.js';
import type { CardSummary, CheckResults, PlaceFreshness, TrainResults } from '../../src/training/index.js';
import { randomStream, shuffledOrder } from '../../src/utils/random.js';
import {
  type BenchOptions,
  type BenchResult,
  compareErrors,
  median,
  result,
  verdictCells,
} from '../support/bench.js';
import { installPython } from '../support/python.js';
import { BENCH_FOLDER } from '../support/scene.js';
import { extentOf, LAND } from './regions.js';

const DETECTORS = fileURLToPath(new URL('../../../bench/training/drift_detectors.py', import.meta.url));
const PRECISION = 5;
const APART = 4;
const DAY_MS = 86_400_000;
const YEARS_DAYS = 735;
const START = Date.UTC(2022, 0, 10, 10);
const SECOND_YEAR = START + 365 * DAY_MS;
/** Part of the land, or of the forest, of a place that changes. */
const CHANGED_SHARE = 0.25;
/** Pixels of a place, and their distance from the north-western corner of its cell in metres. */
const SIZE = 176;
const INSET = 600;
const HELD_OUT_GROUND_ONLY = '2100-01-01T00:00:00Z';

interface Place {
  geocode: string;
  /** Milliseconds since 1970. */
  change?: number;
}

/** Verdicts on dates: place-dates before any change, and changed places at their first clear date. */
interface Detection {
  dates: number;
  falseAlarms: number;
  changed: number;
  detected: number;
}

/** Errors of dates after the first changed one, and CPU seconds of checks and trainings. */
interface Kept {
  errors: Map<string, number>;
  cpu: number;
  trainings: number;
}

/** Mean errors of the dates of each place, and the CPU time over that of retraining everything. */
interface StaleErrors {
  stale: Map<string, number>;
  everything: Map<string, number>;
  cost: number;
}

const none = (): Detection => ({ dates: 0, falseAlarms: 0, changed: 0, detected: 0 });

export async function benchFreshness({ short, log }: BenchOptions): Promise<BenchResult[]> {
  const seeds = short ? [1] : [1, 2, 3];
  const python = short ? undefined : installPython('river', ['river'], 'river', log);
  if (!python) log('without the detectors of river');
  mkdirSync(BENCH_FOLDER, { recursive: true });
  const folder = mkdtempSync(join(BENCH_FOLDER, 'freshness-'));
  const detections = new Map<string, Detection[]>();
  const kept: StaleErrors[] = [];
  try {
    for (const seed of seeds) {
      const run = await runSeed(join(folder, `${seed}`), seed, short, python, log);
      for (const [name, detection] of run.detections)
        detections.set(name, [...(detections.get(name) ?? []), detection]);
      if (run.kept) kept.push(run.kept);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  const share = (name: string, of: (one: Detection) => [number, number]) => {
    const pairs = detections.get(name)!.map(of);
    return (100 * pairs.reduce((sum, [a]) => sum + a, 0)) / pairs.reduce((sum, [, b]) => sum + b, 0);
  };
  const compared = compareErrors(
    kept.map(({ stale }) => stale),
    kept.map(({ everything }) => everything),
  );
  if (kept.length > 0)
    log(`train --stale, regional, over retraining everything: ${verdictCells(compared).join(' | ')}`);
  const peers = [...detections.keys()].filter((name) => name !== 'check');
  const figures = (of: (one: Detection) => [number, number]) =>
    [share('check', of), Object.fromEntries(peers.map((name) => [name, share(name, of)]))] as const;
  return [
    result(
      'changes detected at the first clear date',
      '%',
      ...figures(({ detected, changed }) => [detected, changed]),
    ),
    result(
      'false alarms, share of place-dates',
      '%',
      ...figures(({ falseAlarms, dates }) => [falseAlarms, dates]),
    ),
    ...(kept.length > 0
      ? [
          result('error after train --stale over that of retraining everything', '', compared.ratio!),
          result(
            'CPU time of check and train --stale over that of retraining everything',
            '',
            median(kept.map(({ cost }) => cost)),
          ),
        ]
      : []),
  ];
}

async function runSeed(
  folder: string,
  seed: number,
  short: boolean,
  python: string | undefined,
  log: (line: string) => void,
): Promise<{ detections: Map<string, Detection>; kept?: StaleErrors }> {
  const data = join(folder, 'data');
  // Every three weeks.
  const dates = datesOf(seed, short ? 14 : 35);
  const epochs = short ? 4 : undefined;
  const training = { model: 'ndvi', mode: 'regional', fresh: false, epochs };
  let node = await openBenchNode(data);
  let client = new Client(inProcessTransport(node));
  const places = await generate(client, join(folder, 'scenes'), dates, short ? 4 : 12, seed);
  log(
    `seed ${seed}: ${places.length} places, ${places.filter(({ change }) => change).length} of them change`,
  );
  await client.run('train', { ...training, filter: upTo(SECOND_YEAR) });
  const later = dates.filter(({ datetime }) => Date.parse(datetime) > SECOND_YEAR);
  const { detection, series } = await detect(client, node, places, later, log);
  const detections = new Map([['check', detection], ...(python ? peersOf(python, series) : [])]);
  for (const [name, one] of detections)
    log(
      `${name}: ${one.detected} of ${one.changed} changes detected at the first clear date, ${one.falseAlarms} false alarms on ${one.dates} place-dates`,
    );
  await node.close();
  if (process.env.TILEWRIGHT_BENCH_ONLY === 'detection') return { detections };
  const clear = later.filter(({ cloudShare }) => cloudShare === 0);
  const keep = async (inputs: object, dates: SeriesDate[]) => {
    const copy = join(folder, 'copy');
    cpSync(data, copy, { recursive: true });
    node = await openBenchNode(copy);
    client = new Client(inProcessTransport(node));
    const kept = await keepFresh(client, dates, inputs);
    await node.close();
    rmSync(copy, { recursive: true });
    return kept;
  };
  const everything = await keep(
    { ...training, validationFrom: HELD_OUT_GROUND_ONLY },
    short ? clear.slice(-2) : clear,
  );
  const changed = new Set(
    series.flatMap(({ geocode, changedTimes }) => changedTimes.slice(1).map((time) => `${geocode} ${time}`)),
  );
  const modes = new Map<string, StaleErrors>();
  for (const mode of short ? ['regional'] : ['regional', 'partitioned', 'none']) {
    const { model, ...regional } = training;
    const inputs = {
      model,
      stale: true,
      ...(mode === 'regional' ? regional : { epochs }),
      ...(mode === 'none' && { budget: 0 }),
    };
    const stale = await keep(inputs, clear);
    const known = [...stale.errors.keys()].filter((key) => everything.errors.has(key));
    const mean = ({ errors }: Kept, keys: string[]) =>
      keys.reduce((sum, key) => sum + errors.get(key)!, 0) / keys.length;
    const ratioOf = (keys: string[]) => mean(stale, keys) / mean(everything, keys);
    const cost = stale.cpu / everything.cpu;
    // Each seed has other places.
    const byPlace = (kept: Kept) =>
      new Map(
        places.flatMap(({ geocode }) => {
          const keys = known.filter((key) => key.startsWith(`${geocode} `));
          return keys.length > 0 ? [[`${seed} ${geocode}`, mean(kept, keys)] as const] : [];
        }),
      );
    modes.set(mode, { stale: byPlace(stale), everything: byPlace(everything), cost });
    log(
      `train --stale, ${mode}: error over that of retraining everything ${ratioOf(known).toFixed(3)}, ` +
        `after a change ${ratioOf(known.filter((key) => changed.has(key))).toFixed(3)}, ` +
        `at unchanged places ${ratioOf(known.filter((key) => !changed.has(key))).toFixed(3)}; ` +
        `CPU ${stale.cpu.toFixed(0)} s for ${stale.trainings} models, ${everything.cpu.toFixed(0)} s for ${everything.trainings}: ${cost.toFixed(3)}`,
    );
  }
  return { detections, kept: modes.get('regional')! };
}

const openBenchNode = (data: string): Promise<TilewrightNode> =>
  openNode({ data, memory: 4e9, cores: 1, reserve: 0 });

const upTo = (time: number) => ({ datetime: `../${new Date(time).toISOString()}` });

/** Half of the dates are cloudy, in random order. */
function datesOf(seed: number, count: number): SeriesDate[] {
  const random = randomStream(seed);
  const order = shuffledOrder(count, random.next);
  return Array.from({ length: count }, (_, i) => ({
    datetime: `${new Date(START + ((i * YEARS_DAYS) / count) * DAY_MS).toISOString().slice(0, 19)}Z`,
    cloudShare: order[i]! % 2 ? 0.3 + 0.3 * random.next() : 0,
  }));
}

/** Every second place of each kind of land changes at a random clear date of the second year, but the last one. */
async function generate(
  client: Client,
  folder: string,
  dates: SeriesDate[],
  count: number,
  seed: number,
): Promise<Place[]> {
  const random = randomStream(seed + 1000);
  const names = Object.keys(REGIONS) as (keyof typeof REGIONS)[];
  const clear = dates.filter(
    ({ datetime, cloudShare }) => cloudShare === 0 && Date.parse(datetime) > SECOND_YEAR,
  );
  const places: Place[] = [];
  for (const [i, cell] of geohash.cover(LAND, APART).slice(0, count).entries()) {
    const { west, south, east, north } = geohash.bounds(cell);
    const geocode = geohash.encode((west + east) / 2, (south + north) / 2, PRECISION);
    const corner = extentOf(geocode).origin;
    const region = REGIONS[names[i % names.length]!];
    const size = { width: SIZE, height: SIZE };
    const { landSeed, kind } = landOf({ size, region }, 100_000 * seed + 1000 * (i + 1));
    const from = clear[Math.floor(random.next() * (clear.length - 1))]!.datetime;
    const isChanged = (i + Math.floor(i / names.length)) % 2 === 0;
    const change: LandChange = { kind, from, share: CHANGED_SHARE };
    const files = await writeSentinelLikeSeries(folder, {
      ...{ name: geocode, dates, seed: landSeed, region, size },
      origin: { x: corner.x + INSET, y: corner.y - INSET },
      ...(isChanged && { change }),
    });
    const href = files.map(({ path }) => path);
    const options = { collection: 'land', precision: PRECISION, scale: 0.0001, maskBand: 5 };
    await client.run('ingest', { href, ...options });
    rmSync(folder, { recursive: true });
    places.push({ geocode, ...(isChanged && { change: Date.parse(from) }) });
  }
  return places;
}

/** Returns a seed whose land is mostly not water, and the change that suits it: a clear-cut if most of it is forest. */
function landOf(
  options: { size: { width: number; height: number }; region: (typeof REGIONS)[keyof typeof REGIONS] },
  first: number,
) {
  for (let landSeed = first; ; landSeed += 17) {
    const { kind } = seriesLandscape({ ...options, seed: landSeed });
    const share = (what: LandChange['kind']) =>
      kind.reduce((sum, one) => sum + Number(canChange(one, what)), 0) / kind.length;
    if (share('buildings') < 0.6) continue;
    return { landSeed, kind: share('clear-cut') >= 0.5 ? ('clear-cut' as const) : ('buildings' as const) };
  }
}

interface Series {
  geocode: string;
  known: number[];
  fresh: number[];
  /** Index of the first changed date in `fresh`; -1 if there is none. */
  changedFrom: number;
  /** Times of the changed dates. */
  changedTimes: number[];
}

/** Checks the models of the first year at every date. A date of a place counts if it has enough clear ground. */
async function detect(
  client: Client,
  node: TilewrightNode,
  places: Place[],
  later: SeriesDate[],
  log: (line: string) => void,
) {
  const detection = none();
  /** Number of clear dates between the first changed one and the first verdict, by place. */
  const late = new Map<string, number>();
  const series = new Map<string, Series>();
  for (const { geocode } of places) {
    const card = (await node.storage.models.get(`ndvi_land_g${geocode}`))?.card as CardSummary | undefined;
    const known = card?.dateErrors?.filter(({ trained }) => !trained).map(({ error }) => error) ?? [];
    series.set(geocode, { geocode, known, fresh: [], changedFrom: -1, changedTimes: [] });
  }
  for (const { datetime } of later) {
    const time = Date.parse(datetime);
    const checked = await check(client, time);
    for (const { geocode, change = Infinity } of places) {
      const one = checked.find((place) => place.geocode === geocode);
      const own = series.get(geocode)!;
      if (!one || one.dates === own.fresh.length) continue;
      own.fresh.push(one.error!);
      if (time < change) {
        detection.dates++;
        if (one.status === 'drifted') detection.falseAlarms++;
        continue;
      }
      own.changedTimes.push(time);
      if (own.changedFrom < 0) {
        own.changedFrom = own.fresh.length - 1;
        detection.changed++;
        if (one.status === 'drifted') detection.detected++;
      }
      if (one.status === 'drifted')
        late.set(geocode, Math.min(late.get(geocode) ?? Infinity, own.changedTimes.length - 1));
    }
  }
  log(
    `dates from the first changed one to the first verdict of a change: ${places.flatMap(({ geocode, change }) => (change === undefined ? [] : (late.get(geocode) ?? 'none'))).join(', ')}`,
  );
  return { detection, series: [...series.values()] };
}

async function check(client: Client, time: number): Promise<PlaceFreshness[]> {
  return (await client.run<CheckResults>('check', { model: 'ndvi', filter: upTo(time) })).results.places;
}

/** The detectors of river on the same series. */
function peersOf(python: string, series: Series[]): [string, Detection][] {
  const input = JSON.stringify({ series: series.map(({ known, fresh }) => ({ known, fresh })) });
  const { status, stdout, stderr } = spawnSync(python, [DETECTORS], { input, encoding: 'utf8' });
  if (status !== 0) throw new Error(`river failed: ${stderr}`);
  const found = JSON.parse(stdout) as Record<string, number[][]>;
  return Object.entries(found).map(([name, drifts]) => {
    const detection = none();
    for (const [i, { fresh, changedFrom }] of series.entries()) {
      const before = changedFrom < 0 ? fresh.length : changedFrom;
      detection.dates += before;
      detection.falseAlarms += drifts[i]!.filter((at) => at < before).length;
      if (changedFrom < 0) continue;
      detection.changed++;
      if (drifts[i]!.includes(changedFrom)) detection.detected++;
    }
    return [name, detection];
  });
}

/** At each date, first measures the models as they are, as users get their maps, and then trains. */
async function keepFresh(client: Client, dates: SeriesDate[], inputs: object): Promise<Kept> {
  const kept: Kept = { errors: new Map(), cpu: 0, trainings: 0 };
  for (const { datetime } of dates) {
    const time = Date.parse(datetime);
    for (const { geocode, error } of await check(client, time))
      if (error !== undefined) kept.errors.set(`${geocode} ${time}`, error);
    const before = cpuSeconds();
    const { models } = (await client.run<TrainResults>('train', { ...inputs, filter: upTo(time) })).results;
    kept.cpu += cpuSeconds() - before;
    kept.trainings += models.length;
  }
  return kept;
}

/** CPU time of this process and of its child processes that have ended, in seconds. Linux only. */
function cpuSeconds(): number {
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ')[1]!.split(' ');
  const TICKS_PER_SECOND = 100;
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS_PER_SECOND;
}
