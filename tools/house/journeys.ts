/**
 * Five requests as a reader would follow them: the files, folders and calls of `src` that run on the main thread until the answer, by V8's
 * precise coverage.
 */
import { Session } from 'node:inspector/promises';
import { join, posix } from 'node:path';
import { writeSentinelLikeSeries } from '../../data-samples/index.js';
import { openNode } from '../../src/node.js';
import { runJob, runRequest } from '../../test/support/run-job.js';

export interface Journey {
  name: string;
  /** Files of which at least one function with a name ran, relative to `src/`, without their ending. */
  files: string[];
  folders: number;
  calls: number;
}

const COLLECTION = 'fields';
const GEOCODE = 'u26xg';

/** Ingests sample scenes in a new node below `folder`, searches, draws, trains and predicts. Takes about ten seconds. */
export async function measureJourneys(folder: string): Promise<Journey[]> {
  const scenes = await writeSentinelLikeSeries(join(folder, 'scenes'));
  const coverage = await Coverage.start();
  const node = await openNode({
    data: join(folder, 'data'),
    memory: 5e8,
    cores: 1,
    allowFolders: [folder],
  });
  try {
    const get = async (url: string) => {
      const answer = await node.server.inject({ url });
      if (answer.statusCode !== 200) throw new Error(`GET ${url}: ${answer.body}`);
      return answer;
    };
    const ingest = (scene: (typeof scenes)[number]) =>
      mustSucceed(
        runRequest(node, '/ingest', {
          href: [scene.path],
          datetime: scene.datetime,
          collection: COLLECTION,
          scale: 0.0001,
          maskBand: 5,
        }),
      );
    const journeys: Journey[] = [];
    const [first, ...others] = scenes;

    await coverage.take();
    await ingest(first!);
    journeys.push({ name: 'ingest', ...(await coverage.take()) });

    for (const scene of others) await ingest(scene);
    const search = '/search?maxCloud=10&minCoverage=90&limit=2';
    await get(search);
    await coverage.take();
    await get(search);
    journeys.push({ name: 'search', ...(await coverage.take()) });

    const { center } = (await get(`/xyz/${COLLECTION}/tilejson.json`)).json<{ center: Position }>();
    const tile = `/xyz/${COLLECTION}/${mapTileAt(center)}.png`;
    await get(tile);
    await coverage.take();
    await get(tile);
    journeys.push({ name: 'map tile', ...(await coverage.take()) });

    const filter = { collections: [COLLECTION], geocode: GEOCODE };
    await mustSucceed(runJob(node, 'train', { model: 'ndvi', filter, epochs: 1 }));
    journeys.push({ name: 'training', ...(await coverage.take()) });

    await mustSucceed(runJob(node, 'predict', { model: 'ndvi', filter }));
    journeys.push({ name: 'prediction', ...(await coverage.take()) });
    return journeys;
  } finally {
    await node.close();
    await coverage.stop();
  }
}

async function mustSucceed(job: ReturnType<typeof runJob>): Promise<void> {
  const { status, error } = await job;
  if (status !== 'successful') throw new Error(`job ${status}: ${error?.message}`);
}

type Position = [longitude: number, latitude: number, zoom: number];

/** `zoom/x/y` of the Web Mercator tile that contains a position. */
function mapTileAt([longitude, latitude, zoom]: Position): string {
  const tiles = 2 ** zoom;
  const x = ((longitude + 180) / 360) * tiles;
  const y = ((1 - Math.asinh(Math.tan((latitude * Math.PI) / 180)) / Math.PI) / 2) * tiles;
  return [zoom, Math.floor(x), Math.floor(y)].join('/');
}

class Coverage {
  readonly #session = new Session();
  readonly #source = new URL('../../src/', import.meta.url).href;

  static async start(): Promise<Coverage> {
    const coverage = new Coverage();
    coverage.#session.connect();
    await coverage.#session.post('Profiler.enable');
    await coverage.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    return coverage;
  }

  /** The files, folders and calls that ran since the last call. */
  async take(): Promise<Omit<Journey, 'name'>> {
    const { result } = await this.#session.post('Profiler.takePreciseCoverage');
    const files: string[] = [];
    let calls = 0;
    for (const { url, functions } of result) {
      if (!url.startsWith(this.#source)) continue;
      // Callbacks have no name, and neither has the file itself, which runs when it is loaded.
      const counts = functions.map(({ functionName, ranges }) =>
        functionName === '' ? 0 : ranges[0]!.count,
      );
      if (!counts.some((count) => count > 0)) continue;
      files.push(url.slice(this.#source.length).replace(/\.js$/, ''));
      calls += counts.reduce((sum, count) => sum + count, 0);
    }
    return { files: files.sort(), folders: new Set(files.map((file) => posix.dirname(file))).size, calls };
  }

  async stop(): Promise<void> {
    await this.#session.post('Profiler.disable');
    this.#session.disconnect();
  }
}
