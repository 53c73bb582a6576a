/**
 * `tilewright demo`: ingest, search and training on sample scenes or on the user's scene, and a report. Only this file imports
 * `data-samples`.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { arch, availableParallelism, cpus, platform, totalmem } from 'node:os';
import { join, relative } from 'node:path';
import sharp from 'sharp';
import { writeSentinelLikeSeries } from '../../data-samples/index.js';
import { Client, type ItemCollection } from '../client/index.js';
import {
  type DemoReport,
  type ReportModel,
  type ReportTile,
  renderReport,
  shownTiles,
} from '../demo-report/index.js';
import { cellBbox, gridByName } from '../grid/index.js';
import { formatDuration } from '../html/index.js';
import type { IngestInputs, IngestResults } from '../ingest/index.js';
import type { Timed } from '../jobs/index.js';
import { openNode } from '../node.js';
import { isoTime } from '../query/index.js';
import { readImage } from '../raster/index.js';
import type { CollectionRecord, Storage, TileRecord } from '../storage/index.js';
import type { ModelCard, TrainResults } from '../training/index.js';
import { plural } from '../utils/text.js';
import { inProcessTransport } from './connection.js';
import type { CommonOptions, ResourceOptions } from './options.js';
import { logToStderr, print, printJson, servedSummary, table, withProgressLine } from './output.js';

interface DemoOptions extends CommonOptions, ResourceOptions {
  /** The user's scene. If undefined, sample scenes are generated. */
  path?: string;
  out: string;
  epochs?: number;
  signal: AbortSignal;
}

/** Tiles within these limits have enough clear ground to train on. */
const MAX_CLOUD_PERCENT = 40;
const MIN_COVERAGE_PERCENT = 40;
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

    const filter = {
      collections: [collection.id],
      maxCloud: MAX_CLOUD_PERCENT,
      minCoverage: MIN_COVERAGE_PERCENT,
    };
    logToStderr(
      `3/4  searching: cloud at most ${MAX_CLOUD_PERCENT} %, coverage at least ${MIN_COVERAGE_PERCENT} %`,
    );
    const everything = await client.search({ collections: [collection.id], limit: SEARCH_LIMIT });
    const picked = await client.search({ ...filter, limit: SEARCH_LIMIT });
    logToStderr(`     ${picked.numberMatched} of ${everything.numberMatched} tiles match`);

    logToStderr('4/4  training small models of the places: NDVI from red, green and blue');
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
        command: `tilewright search --max-cloud ${MAX_CLOUD_PERCENT} --min-coverage ${MIN_COVERAGE_PERCENT} --data ${folder}`,
        description: `at most ${MAX_CLOUD_PERCENT} % cloud, and data in at least ${MIN_COVERAGE_PERCENT} % of the cell`,
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
      row('the models of the places', pooled.model),
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

const PREVIEW_SIDE_PIXELS = 240;
/** Reflectances from black to white. Land is dark, so clouds may be overexposed. */
const BLACK_POINT = 0.01;
const WHITE_POINT = 0.28;
const GAMMA = 1 / 1.6;

/** A small true-colour picture of a tile as a data URI, transparent where the tile has no data; undefined if the tile lacks a colour. */
async function renderPreview(storage: Storage, tile: TileRecord): Promise<string | undefined> {
  const group = tile.groups.find((one) =>
    ['red', 'green', 'blue'].every((colour) => one.bands.some((band) => band.commonName === colour)),
  );
  if (!group) return undefined;
  const indexes = ['red', 'green', 'blue'].map((colour) =>
    group.bands.findIndex((b) => b.commonName === colour),
  );
  const { bands, valid } = await readImage(storage.tileImage(tile, group.name), indexes);
  const { width, height } = group;
  const rgba = new Uint8Array(width * height * 4);
  for (const [c, pixels] of bands.entries()) {
    const { scale, offset } = group.bands[indexes[c]];
    for (let i = 0; i < width * height; i++) {
      const reflectance = pixels[i] * scale + offset;
      const share = Math.min(1, Math.max(0, (reflectance - BLACK_POINT) / (WHITE_POINT - BLACK_POINT)));
      rgba[4 * i + c] = Math.round(255 * share ** GAMMA);
      if (c === 0) rgba[4 * i + 3] = 255;
      if (valid[c]?.[i] === 0) rgba[4 * i + 3] = 0;
    }
  }
  const picture = sharp(rgba, { raw: { width, height, channels: 4 } }).resize(
    PREVIEW_SIDE_PIXELS,
    PREVIEW_SIDE_PIXELS,
    {
      fit: 'inside',
    },
  );
  return `data:image/webp;base64,${(await picture.webp({ quality: 70 }).toBuffer()).toString('base64')}`;
}

interface DemoResults {
  collection: CollectionRecord;
  ingest: IngestResults;
  everything: ItemCollection;
  picked: ItemCollection;
  train: Timed<TrainResults>;
  query: { command: string; description: string };
  next: string[];
}

async function gatherReport(storage: Storage, results: DemoResults): Promise<DemoReport> {
  const { collection, ingest, everything, picked, train, query, next } = results;
  const pickedIds = new Set(picked.features.map(({ id }) => id));
  const records = await storage.getTiles(everything.features.map(({ id }) => id));
  const tiles = records.map((tile) => reportTile(tile, pickedIds.has(tile.id)));
  for (const shown of shownTiles(tiles)) {
    const record = records.find(({ id }) => id === shown.id);
    if (record) shown.preview = await renderPreview(storage, record);
  }
  return {
    title: 'From a satellite scene to a model for each place',
    generatedAt: new Date().toISOString(),
    machine: machine(),
    collection,
    scenes: ingest.scenes.map((scene) => reportScene(scene, records)),
    tiles,
    query: { ...query, matched: picked.numberMatched, total: everything.numberMatched },
    training: {
      engine: train.engine,
      seconds: train.seconds,
      served: servedSummary(train.models),
      models: await Promise.all(train.models.map((model) => reportModel(storage, model.id))),
      skipped: train.skipped,
      pooled: train.pooled,
    },
    next,
  };
}

function reportTile(tile: TileRecord, picked: boolean): ReportTile {
  const { id, geocode, scene, coverage, cloudCover } = tile;
  const bbox = cellBbox(gridByName(tile.grid), geocode);
  return { id, geocode, scene, time: isoTime(tile.start), bbox, coverage, cloudCover, picked };
}

function reportScene(
  scene: IngestResults['scenes'][number],
  tiles: TileRecord[],
): DemoReport['scenes'][number] {
  const { id, collection, warnings } = scene;
  const first = tiles.find((tile) => tile.scene === id);
  const groups = first?.groups.filter(({ role }) => role === 'data') ?? [];
  return {
    id,
    collection,
    time: isoTime(first?.start ?? 0),
    platform: first?.platform ?? null,
    bands: groups.flatMap((group) => group.bands.map(({ name }) => name)),
    size: groups.map(({ name, width, height }) => `${name}: ${width} x ${height} px a tile`).join(', '),
    tiles: scene.tiles,
    warnings,
  };
}

async function reportModel(storage: Storage, id: string): Promise<ReportModel> {
  const model = await storage.models.get(id);
  if (!model) throw new Error(`the model ${id} was not stored`);
  const { losses, metrics, baseline, predictions, patches, seconds }: Required<ModelCard> = JSON.parse(
    (await storage.models.readFile(model, 'card.json')).toString(),
  );
  const bbox = cellBbox(gridByName(model.grid), model.geocode);
  return { geocode: model.geocode, bbox, losses, metrics, baseline, predictions, patches, seconds };
}

function machine(): string {
  const memory = `${Math.round(totalmem() / 1e9)} GB`;
  return `${cpus()[0]?.model.trim() ?? arch()}, ${availableParallelism()} cores, ${memory}, ${platform()}, Node ${process.version}`;
}
