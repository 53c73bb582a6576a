/** The ingest process: its inputs, outputs and retries. Its threads end once nothing has been ingested for some time. */
import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Process } from '../jobs/index.js';
import { checkUrl, NO_HOSTS, withoutSecrets } from '../remote/index.js';
import { isRemoteAddress } from '../utils/text.js';
import { SharedMemory } from './cut/memory.js';
import { notRecognised, pathNotAllowed } from './errors.js';
import { IngestJob } from './job.js';
import { type IngestInputs, type IngestProcessContext, type IngestResults, NO_ACCESS } from './job-inputs.js';
import { PathGuard } from './path-guard.js';
import { checkStacSource } from './remote-scenes.js';
import { FirstSceneLock } from './scene-order.js';
import { ScenePartService } from './scene-part-service.js';
import { StoredFiles } from './scene-tiles.js';

/** Calls `onIdle` once no work has run for some time. The timer does not keep the process alive. */
export class IdleTimer {
  private running = 0;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly idleMs: number,
    private readonly onIdle: () => Promise<void>,
  ) {}

  async runBusy<T>(work: () => Promise<T>): Promise<T> {
    this.running++;
    clearTimeout(this.timer);
    try {
      return await work();
    } finally {
      this.running--;
      if (this.running === 0) this.timer = setTimeout(() => void this.onIdle(), this.idleMs).unref();
    }
  }
}

const INPUT_SCHEMAS = {
  type: 'object',
  anyOf: [{ required: ['paths'] }, { required: ['stac'] }],
  additionalProperties: false,
  properties: {
    paths: { type: 'array', items: { type: 'string' }, minItems: 1 },
    stac: {
      type: 'object',
      oneOf: [{ required: ['url'] }, { required: ['items'] }],
      additionalProperties: false,
      description:
        'Scenes of a STAC API, a static catalog, an ItemCollection or an Item at "url", or of "items"',
      properties: {
        url: { type: 'string', minLength: 1, maxLength: 4000 },
        items: { type: 'array', items: { type: 'object' }, minItems: 1, maxItems: 1000 },
        collections: { type: 'array', items: { type: 'string', maxLength: 200 }, minItems: 1, maxItems: 100 },
        datetime: { type: 'string', maxLength: 100 },
        filter: {
          anyOf: [{ type: 'string', maxLength: 20_000 }, { type: 'object' }],
          description: 'CQL2 as text or JSON',
        },
        maxCloud: { type: 'number', minimum: 0, maximum: 100 },
        assets: { type: 'array', items: { type: 'string', maxLength: 200 }, minItems: 1, maxItems: 200 },
        limit: { type: 'integer', minimum: 1, maximum: 10_000 },
        all: {
          type: 'boolean',
          description:
            'True for all Items of the search. Without it, a search with more than 1,000 is refused',
        },
      },
    },
    collection: {
      type: 'string',
      pattern: '^[a-z0-9][a-z0-9.-]{0,63}$',
      description: '1 to 64 small letters, digits, - and ., beginning with a letter or digit',
    },
    grid: { enum: ['geohash', 'quadtile'] },
    precision: { type: 'integer', minimum: 1, maximum: 24 },
    bbox: {
      type: 'array',
      items: { type: 'number' },
      minItems: 4,
      maxItems: 4,
      description:
        'West, south, east and north in degrees. Only the cells of this region are made, each as a whole',
    },
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
      description: 'Numbers of bands by name; a name has 1 to 64 letters, digits, _ . and -',
      additionalProperties: { type: 'integer', minimum: 1 },
    },
    nodata: { anyOf: [{ type: 'number' }, { enum: ['nan'] }] },
    // A scale of 0 would make all values equal.
    scale: { type: 'number', not: { enum: [0] } },
    offset: { type: 'number' },
    platform: { type: 'string', minLength: 1, maxLength: 100 },
    maskBand: { type: 'integer', minimum: 1 },
    layer: { type: 'string', minLength: 1, maxLength: 200 },
    position: { type: 'string', maxLength: 200 },
    wavelengths: { type: 'array', items: { type: 'number' }, minItems: 2, maxItems: 4096 },
    namePattern: { type: 'string', minLength: 1, maxLength: 255 },
  },
};

const OUTPUT_SCHEMAS = {
  collection: { title: 'Collection of the first scene', schema: { type: 'string', nullable: true } },
  scenes: { title: 'Ingested scenes', schema: { type: 'array', items: { type: 'object' } } },
  tiles: { title: 'Number of their tiles', schema: { type: 'integer' } },
  failed: { title: 'Failed inputs, with reasons', schema: { type: 'array', items: { type: 'object' } } },
  suggested: {
    title:
      'Options with which the same inputs can be ingested, if all of them failed because they lack these',
    schema: { type: 'object' },
  },
  passedOver: {
    title: 'Folders without an input, and those that were not searched',
    schema: { type: 'array', items: { type: 'string' } },
  },
  skipped: {
    title: 'Files that do not fit the name pattern, and scenes outside of the region, with reasons',
    schema: { type: 'array', items: { type: 'object' } },
  },
  seconds: { title: 'Duration in seconds', schema: { type: 'number' } },
};

/** Fraction of the memory that holds source rows; threads and GDAL processes use the rest. */
const SOURCE_ROWS_MEMORY_FRACTION = 0.6;
/** The memory of rows and threads is returned to the system if nothing is ingested for this long. */
const IDLE_TIMEOUT_MS = 30_000;

interface IngestProcess extends Process {
  /** Makes parts of the scenes that other nodes of the cluster ingest. */
  parts: ScenePartService;
}

/**
 * Ingests every scene below the given paths. A scene that fails is reported with its reason; the others continue. The job
 * fails if all scenes do.
 */
export function ingestProcess(context: IngestProcessContext): IngestProcess {
  const memory = new SharedMemory(SOURCE_ROWS_MEMORY_FRACTION * context.memory);
  const firstSceneLock = new FirstSceneLock(context.storage);
  const storedFiles = new StoredFiles(context.storage);
  const idle = new IdleTimer(IDLE_TIMEOUT_MS, async () => {
    // Threads refer to the memory of rows until they end.
    await context.workers.endThreads();
    memory.releaseBuffer();
  });
  const { storage, workers: pool, cloudModel, remote = NO_ACCESS } = context;
  const parts = new ScenePartService({ storage, pool, memory, cloudModel }, remote, (work) =>
    idle.runBusy(work),
  );
  return {
    parts,
    id: 'ingest',
    title: 'Ingest scenes',
    description: 'Cuts scenes into tiles, with coverage, cloud cover and a mask.',
    inputs: INPUT_SCHEMAS,
    outputs: OUTPUT_SCHEMAS,
    check: (inputs) => {
      const { paths = [], stac } = inputs as IngestInputs;
      const policy = context.remote?.policy;
      if (stac) checkStacSource(stac, policy);
      for (const path of paths) if (/^https?:/i.test(path)) checkUrl(path, policy ?? NO_HOSTS);
    },
    // A scene that already exists is skipped.
    resumable: true,
    retryInputs: (inputs, results) => failedInputs(inputs as IngestInputs, results as IngestResults),
    canTakeOver: (inputs) => isAllowedToRead(inputs as IngestInputs, context),
    run: (inputs, job) =>
      idle.runBusy(() =>
        new IngestJob(context, memory, firstSceneLock, storedFiles, inputs as IngestInputs, job).run(),
      ),
  };
}

/** True if all paths are in folders that this node may read. */
async function isAllowedToRead(
  { paths = [] }: IngestInputs,
  { allowedFolders = [] }: IngestProcessContext,
): Promise<boolean> {
  const fence = new PathGuard(allowedFolders);
  for (const path of paths.filter((one) => !isRemoteAddress(one))) {
    const real = await fence.resolveAllowed(path).catch((error) => {
      if (!pathNotAllowed.is(error) && !notRecognised.is(error)) throw error;
    });
    if (real === undefined) return false;
  }
  return true;
}

/** The inputs of a job that retries the failures of another one; null if there are none. */
async function failedInputs(inputs: IngestInputs, { failed }: IngestResults): Promise<IngestInputs | null> {
  const { paths: given = [], stac, ...options } = inputs;
  const remote = given.filter(isRemoteAddress);
  const paths = new Set<string>();
  const ids = new Set(stac?.items?.map(({ id }) => id));
  let hasItems = false;
  for (const { path } of failed) {
    // Several addresses can differ only in secrets.
    const urls = remote.filter((one) => withoutSecrets(one) === path);
    for (const url of urls) paths.add(url);
    if (urls.length > 0) continue;
    if (URL.canParse(path) || ids.has(path)) hasItems = true;
    else paths.add(await archiveOf(path));
  }
  if (paths.size === 0 && !hasItems) return null;
  // Items that are stored are skipped, so the search is repeated as it is.
  return { ...options, ...(paths.size > 0 && { paths: [...paths] }), ...(hasItems && { stac }) };
}

/** The archive that a path leads into; otherwise the path itself. */
async function archiveOf(path: string): Promise<string> {
  for (let above = dirname(path); above !== dirname(above); above = dirname(above)) {
    // A path that does not exist or cannot be read is not an archive; ingesting it reports the error.
    const info = await stat(above).catch(() => null);
    if (info) return info.isFile() ? above : path;
  }
  return path;
}
