/** Runs the steps of the demo and prints a summary. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { writeSentinelLikeSeries } from '../../../data-samples/index.js';
import { Client } from '../../client/index.js';
import { renderReport } from '../../demo-report/index.js';
import { formatDuration } from '../../html/index.js';
import type { IngestInputs, IngestResults } from '../../ingest/index.js';
import { openNode } from '../../node.js';
import type { CollectionRecord } from '../../storage/index.js';
import type { TrainResults } from '../../training/index.js';
import { plural } from '../../utils/plural.js';
import { inProcessTransport } from '../cli-connection.js';
import type { CommonOptions, ResourceOptions } from '../options/index.js';
import { logToStderr, print, printJson, table, withProgressLine } from '../output/index.js';
import { gatherReport } from './demo-command-results.js';

interface DemoOptions extends CommonOptions, ResourceOptions {
  /** The user's scene. If undefined, sample scenes are generated. */
  path?: string;
  out: string;
  epochs?: number;
  signal: AbortSignal;
}

/** Percent. Tiles within these limits have enough clear ground to train on. */
const MAX_CLOUD = 40;
const MIN_COVERAGE = 40;
const SEARCH_LIMIT = 10_000;

export async function runDemo(options: DemoOptions): Promise<void> {
  const { out, signal, format } = options;
  const started = performance.now();
  await mkdir(out, { recursive: true });
  logToStderr('1/4  scenes');
  const input: DemoInput = options.path
    ? { description: relativePath(options.path), ingest: { paths: [options.path] } }
    : await sampleScenes(out);
  logToStderr(`     ${input.description}`);

  const data = join(out, options.path ? 'data-own' : 'data');
  const node = await openNode({ data, memory: options.memory, cores: options.cores });
  try {
    const client = new Client(inProcessTransport(node));
    logToStderr('2/4  cutting the scenes into tiles');
    const { results: ingest } = await withProgressLine('tiles', ({ update: onProgress }) =>
      client.run<IngestResults>('ingest', input.ingest, { signal, onProgress }),
    );
    for (const { warnings } of ingest.scenes)
      for (const warning of warnings) logToStderr(`     note: ${warning}`);
    for (const { message, code } of ingest.failed) logToStderr(`error: ${message} [${code}]`);
    const collection = ingest.collection && (await node.storage.catalogue.collections.get(ingest.collection));
    if (!collection) {
      process.exitCode = 1;
      return;
    }
    logToStderr(
      `     ${plural(ingest.tiles, 'tile')} of ${plural(ingest.scenes.length, 'scene')} in ${formatDuration(ingest.seconds)}`,
    );

    const filter = { collections: [collection.id], maxCloud: MAX_CLOUD, minCoverage: MIN_COVERAGE };
    logToStderr(`3/4  searching: cloud at most ${MAX_CLOUD} %, coverage at least ${MIN_COVERAGE} %`);
    const everything = await client.search({ collections: [collection.id], limit: SEARCH_LIMIT });
    const picked = await client.search({ ...filter, limit: SEARCH_LIMIT });
    logToStderr(`     ${picked.numberMatched} of ${everything.numberMatched} tiles match`);

    logToStderr('4/4  training a small model for each place: NDVI from red, green and blue');
    const training = { model: 'ndvi', filter, epochs: options.epochs };
    const { results: train } = await withProgressLine('places', ({ update: onProgress }) =>
      client.run<TrainResults>('train', training, { signal, onProgress }),
    );
    logToStderr(
      `     ${plural(train.models.length, 'model')} in ${formatDuration(train.seconds)}, engine ${train.engine}`,
    );

    const file = join(out, options.path ? 'report-own.html' : 'report.html');
    const folder = relativePath(data);
    const report = await gatherReport(node.storage, {
      collection,
      ingest,
      everything,
      picked,
      train,
      query: {
        command: `tilewright search --max-cloud ${MAX_CLOUD} --min-coverage ${MIN_COVERAGE} --data ${folder}`,
        description: `at most ${MAX_CLOUD} % cloud, and data in at least ${MIN_COVERAGE} % of the cell`,
      },
      next: nextCommands(folder, collection, train),
    });
    await writeFile(file, renderReport(report));
    if (format === 'json') return printJson({ report: file, ingest, train });
    summarise(train, file, report.next, (performance.now() - started) / 1000);
    if (train.models.length === 0) process.exitCode = 1;
  } finally {
    await node.close();
  }
}

interface DemoInput {
  description: string;
  ingest: IngestInputs;
}

async function sampleScenes(out: string): Promise<DemoInput> {
  const folder = join(out, 'scenes');
  const files = await writeSentinelLikeSeries(folder);
  return {
    description: `${plural(files.length, 'date')} of a synthetic landscape, similar to Sentinel-2, in ${relativePath(folder)}`,
    ingest: { paths: files.map(({ path }) => path), collection: 'sample', scale: 0.0001, maskBand: 5 },
  };
}

function nextCommands(data: string, { id }: CollectionRecord, { models }: TrainResults): string[] {
  return [
    `npx tilewright search --collection ${id} --max-cloud 10 --data ${data}`,
    ...(models.length > 0 ? [`npx tilewright models ${models[0].id} --data ${data}`] : []),
    `npx tilewright serve --data ${data}`,
    'npx tilewright ingest --help',
  ];
}

function summarise(
  { models, skipped, pooled }: TrainResults,
  report: string,
  next: string[],
  seconds: number,
): void {
  print();
  if (pooled) {
    const row = (name: string, { mse, r2 }: { mse: number; r2: number }) => [
      name,
      mse.toExponential(2),
      r2.toFixed(3),
    ];
    print('NDVI of validation patches, all places together:');
    const rows = [
      ['', 'MSE', 'R2'],
      row('a model for each place', pooled.model),
      row('linear regression', pooled.linear),
      row('training mean', pooled.mean),
    ];
    for (const line of table(rows)) print(`  ${line}`);
    const wins = models.filter(
      ({ metrics, baseline }) => metrics.validation.mse < baseline.linear.mse,
    ).length;
    print(`The model beats linear regression in ${wins} of ${plural(models.length, 'place')}.`);
  }
  if (skipped.length > 0)
    print(`${plural(skipped.length, 'place')} had too little clear ground to train on.`);
  print();
  print(`Report: ${report}`);
  print('Next:');
  for (const command of next) print(`  ${command}`);
  logToStderr(`(total time ${formatDuration(seconds)})`);
}

const relativePath = (path: string) => relative(process.cwd(), path) || '.';
