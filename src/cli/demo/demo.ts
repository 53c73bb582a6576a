/** The main job on sample scenes or on a scene of the user's: ingest, search, train, and a report of it all. */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { writeSentinelLikeSeries } from '../../../data-samples/index.js';
import { Client, type ItemCollection } from '../../client/index.js';
import type { IngestResults } from '../../ingest/index.js';
import { openNode } from '../../node.js';
import type { FilterParams } from '../../query/index.js';
import type { TrainResults } from '../../training/index.js';
import { count, duration, note, print, printJson, progressLine } from '../output.js';
import { renderReport } from '../report/index.js';
import { injected } from '../target.js';
import { gatherReport } from './gather.js';

export interface DemoOptions {
  /** A scene of the user's; undefined makes the samples. */
  path?: string;
  out: string;
  epochs?: number;
  memory: number;
  cores: number;
  format: 'text' | 'json';
  signal: AbortSignal;
}

/** Tiles that are nearly whole and nearly free of cloud: what one would train on. */
const FILTER: FilterParams = { maxCloud: 20, minCoverage: 60 };

export async function runDemo(options: DemoOptions): Promise<void> {
  const { out, signal } = options;
  const started = performance.now();
  const say = (line: string) => note(line);
  await mkdir(out, { recursive: true });
  const scenes = options.path ? [options.path] : await makeSamples(out, say);
  // Each input has a store of its own, so that the report shows this input alone.
  const data = join(out, options.path ? 'data-of-your-scene' : 'data');
  if (options.path) await rm(data, { recursive: true, force: true });
  const node = await openNode({ data, memory: options.memory, cores: options.cores });
  try {
    const client = new Client(injected(node));
    say('2/4 cutting the scenes into tiles');
    const ingest = await withProgress('tiles', (onProgress) =>
      client.run<IngestResults>(
        'ingest',
        { paths: scenes, ...sampleOptions(options) },
        { signal, onProgress },
      ),
    );
    for (const { path, message, code } of ingest.results.failed) note(`error: ${path}: ${message} [${code}]`);
    const { collection } = ingest.results;
    if (!collection) {
      process.exitCode = 1;
      return;
    }
    const { tiles, seconds } = ingest.results;
    say(
      `    ${count(tiles, 'tile')} of ${count(ingest.results.scenes.length, 'scene')} in ${duration(seconds)}`,
    );

    const filter = { collections: [collection], ...FILTER };
    const everything = await client.search({ collections: [collection], limit: 10_000 });
    const picked = await client.search({ ...filter, limit: 10_000 });
    say(`3/4 searching: cloud at most ${FILTER.maxCloud} %, coverage at least ${FILTER.minCoverage} %`);
    say(`    ${picked.numberMatched} of ${everything.numberMatched} tiles fit`);

    say('4/4 training a small NDVI model for each place');
    const train = await withProgress('places', (onProgress) =>
      client.run<TrainResults>(
        'train',
        { model: 'ndvi', filter, epochs: options.epochs },
        { signal, onProgress },
      ),
    );
    const report = await gatherReport(node.storage, {
      collection,
      ingest: ingest.results,
      everything,
      picked,
      train: train.results,
      data: relative(process.cwd(), data) || '.',
      filter: FILTER,
    });
    const file = join(out, 'report.html');
    await writeFile(file, renderReport(report));
    if (options.format === 'json') printJson({ report: file, ingest: ingest.results, train: train.results });
    else
      summarise(
        train.results,
        report.training.pooled,
        file,
        report.next,
        (performance.now() - started) / 1000,
      );
  } finally {
    await node.close();
  }
}

async function makeSamples(out: string, say: (line: string) => void): Promise<string[]> {
  say('1/4 making sample scenes (synthetic, like Sentinel-2)');
  return writeSentinelLikeSeries(join(out, 'scenes'));
}

async function withProgress<T>(
  unit: string,
  work: (onProgress: (p: Parameters<ReturnType<typeof progressLine>['update']>[0]) => void) => Promise<T>,
): Promise<T> {
  const line = progressLine(unit);
  try {
    return await work(line.update);
  } finally {
    line.end();
  }
}
