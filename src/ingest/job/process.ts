/** Ingest as a process: what it takes, what it answers, and what a retry of it is. */
import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Process } from '../../jobs/index.js';
import { SharedMemory } from '../cut/index.js';
import { notRecognised, pathNotAllowed } from '../errors.js';
import { PathGuard } from '../inputs/index.js';
import { FirstSceneLock } from './first-scene-lock.js';
import { IdleTimer } from './idle-timer.js';
import { type IngestInputs, IngestJob, type IngestProcessContext, type IngestResults } from './ingest-job.js';

const INPUTS = {
  type: 'object',
  required: ['paths'],
  additionalProperties: false,
  properties: {
    paths: { type: 'array', items: { type: 'string' }, minItems: 1 },
    collection: {
      type: 'string',
      pattern: '^[a-z0-9][a-z0-9.-]{0,63}$',
      description: '1 to 64 small letters, digits, - and ., beginning with a letter or digit',
    },
    grid: { enum: ['geohash', 'quadtile'] },
    precision: { type: 'integer', minimum: 1, maximum: 24 },
    dryRun: { type: 'boolean' },
    compress: { enum: ['deflate'] },
    cloudTest: { type: 'boolean' },
    id: {
      type: 'string',
      pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,119}$',
      description: '1 to 120 letters, digits, ., _ and -, beginning with a letter or digit',
    },
    datetime: { type: 'string', maxLength: 100 },
    bands: {
      type: 'object',
      maxProperties: 1000,
      propertyNames: { pattern: '^[\\w.-]{1,64}$' },
      additionalProperties: { type: 'integer', minimum: 1 },
    },
    nodata: { anyOf: [{ type: 'number' }, { enum: ['nan'] }] },
    // Nothing is left of a pixel that is multiplied by 0.
    scale: { type: 'number', not: { enum: [0] } },
    offset: { type: 'number' },
    platform: { type: 'string', minLength: 1, maxLength: 100 },
    maskBand: { type: 'integer', minimum: 1 },
    layer: { type: 'string', minLength: 1, maxLength: 200 },
    position: { type: 'string', maxLength: 200 },
    wavelengths: { type: 'array', items: { type: 'number' }, minItems: 2, maxItems: 4096 },
  },
};

const OUTPUTS = {
  collection: { title: 'Collection of the first scene', schema: { type: 'string', nullable: true } },
  scenes: { title: 'Scenes that are there now', schema: { type: 'array', items: { type: 'object' } } },
  tiles: { title: 'Number of their tiles', schema: { type: 'integer' } },
  failed: { title: 'Inputs that failed, and why', schema: { type: 'array', items: { type: 'object' } } },
  passedOver: {
    title: 'Folders that were not looked into',
    schema: { type: 'array', items: { type: 'string' } },
  },
  seconds: { title: 'Time that it took', schema: { type: 'number' } },
};

/** Share of the memory that holds source rows; the rest is for what threads and GDAL's processes work on. */
const SOURCE_ROWS_MEMORY_FRACTION = 0.6;
/** If nothing is ingested for this long, the memory of rows and threads is returned to the system. */
const IDLE_TIMEOUT_MS = 30_000;

/** Ingests every scene below the given paths. One that fails is named with its reason; the others go on. The job fails if all do. */
export function ingestProcess(context: IngestProcessContext): Process {
  const arena = new SharedMemory(SOURCE_ROWS_MEMORY_FRACTION * context.memory);
  const founders = new FirstSceneLock(context.storage);
  const idle = new IdleTimer(IDLE_TIMEOUT_MS, async () => {
    // Threads refer to the memory of rows until they end.
    await context.workers.endThreads();
    arena.releaseBuffer();
  });
  return {
    id: 'ingest',
    title: 'Ingest scenes',
    description: 'Cuts scenes into tiles, with coverage, cloud cover and a mask.',
    inputs: INPUTS,
    outputs: OUTPUTS,
    // A scene that is there already is passed over.
    resumable: true,
    retryInputs: (inputs, results) => failedInputs(inputs as IngestInputs, results as IngestResults),
    canTakeOver: (inputs) => isAllowedToRead(inputs as IngestInputs, context),
    run: (inputs, job) =>
      idle.runBusy(() => new IngestJob(context, arena, founders, inputs as IngestInputs, job).run()),
  };
}

/** Whether all paths are in folders that this node may read. */
async function isAllowedToRead(
  { paths }: IngestInputs,
  { allowedFolders = [] }: IngestProcessContext,
): Promise<boolean> {
  const fence = new PathGuard(allowedFolders);
  for (const path of paths) {
    const real = await fence.resolveAllowed(path).catch((error) => {
      if (!pathNotAllowed.is(error) && !notRecognised.is(error)) throw error;
    });
    if (real === undefined) return false;
  }
  return true;
}

/** The inputs of a run over what failed in another one; null where nothing did. */
async function failedInputs(inputs: IngestInputs, { failed }: IngestResults): Promise<IngestInputs | null> {
  const paths = new Set<string>();
  for (const { path } of failed) paths.add(await archiveOf(path));
  return paths.size === 0 ? null : { ...inputs, paths: [...paths] };
}

/** The archive that a path leads into; the path itself where it leads into none. */
async function archiveOf(path: string): Promise<string> {
  for (let above = dirname(path); above !== dirname(above); above = dirname(above)) {
    // A path that does not exist or cannot be read is not an archive; ingesting it reports the error.
    const info = await stat(above).catch(() => null);
    if (info) return info.isFile() ? above : path;
  }
  return path;
}
