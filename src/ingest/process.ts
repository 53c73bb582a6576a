import { messageOf, TilewrightError } from '../errors.js';
import type { JobContext, Process } from '../jobs/index.js';
import { ingestFailed, sceneTwice } from './errors.js';
import { describeScenes, findInputs } from './formats/index.js';
import { type IngestContext, type IngestOptions, ingestScene, type SceneResult } from './ingest.js';
import type { Scene } from './scene.js';

export interface IngestInputs extends IngestOptions {
  /** Files or folders on the disk of the node. */
  paths: string[];
}

export interface IngestResults {
  collection: string | null;
  scenes: SceneResult[];
  tiles: number;
  failed: { path: string; code: string; message: string }[];
  /** Folders below the given ones in which no scene was found. */
  passedOver: string[];
  seconds: number;
}

const INPUTS = {
  type: 'object',
  required: ['paths'],
  additionalProperties: false,
  properties: {
    paths: { type: 'array', items: { type: 'string' }, minItems: 1 },
    collection: { type: 'string', pattern: '^[a-z0-9][a-z0-9.-]{0,63}$' },
    grid: { enum: ['geohash', 'quadtile'] },
    precision: { type: 'integer' },
    id: { type: 'string', pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,119}$' },
    datetime: { type: 'string' },
    bands: { type: 'object', additionalProperties: { type: 'integer', minimum: 1 } },
    nodata: { type: 'number' },
    scale: { type: 'number' },
    offset: { type: 'number' },
    platform: { type: 'string' },
    maskBand: { type: 'integer', minimum: 1 },
  },
};

/** Ingests every scene below the given paths. A scene that fails is named with its reason; the others go on. */
export function ingestProcess(context: IngestContext): Process {
  return {
    id: 'ingest',
    title: 'Ingest scenes',
    description: 'Cuts scenes into tiles, with coverage, cloud cover and a mask.',
    inputs: INPUTS,
    run: (inputs, job) => ingestPaths(context, inputs as IngestInputs, job),
  };
}

async function ingestPaths(
  context: IngestContext,
  inputs: IngestInputs,
  job: JobContext,
): Promise<IngestResults> {
  const started = performance.now();
  const { paths, ...options } = inputs;
  const results: IngestResults = {
    collection: null,
    scenes: [],
    tiles: 0,
    failed: [],
    passedOver: [],
    seconds: 0,
  };
  const attempt = async <T>(path: string, work: () => Promise<T>): Promise<T | null> => {
    try {
      return await work();
    } catch (error) {
      if (job.signal.aborted) throw error;
      const { code, message } =
        error instanceof TilewrightError ? error : ingestFailed(path, messageOf(error));
      results.failed.push({ path, code, message });
      return null;
    }
  };

  const scenes: Scene[] = [];
  for (const path of paths) {
    const found = await attempt(path, () => findInputs(path));
    for (const input of found?.inputs ?? [])
      scenes.push(...((await attempt(input, () => describeScenes(input, options))) ?? []));
    results.passedOver.push(...(found?.passedOver ?? []));
  }
  const seen = new Map<string, string>();
  const tiles = { total: 0, done: 0, failed: 0, skipped: 0 };
  for (const [i, described] of scenes.entries()) {
    const { path } = described;
    job.message(`scene ${i + 1} of ${scenes.length}: ${path}`);
    const scene = await attempt(path, () =>
      ingestScene(context, described, options, {
        signal: job.signal,
        onScene: (collection, scene) => {
          const key = `${collection}/${scene}`;
          const other = seen.get(key);
          if (other !== undefined) throw sceneTwice(path, other, scene);
          seen.set(key, path);
        },
        onCells: (count) => {
          tiles.total += count;
          job.progress(tiles);
        },
        onCell: (stored) => {
          if (stored) tiles.done++;
          else tiles.skipped++;
          job.progress(tiles);
        },
      }),
    );
    if (!scene) continue;
    results.scenes.push(scene);
    results.tiles += scene.tiles;
    results.collection ??= scene.collection;
  }
  results.seconds = (performance.now() - started) / 1000;
  return results;
}
