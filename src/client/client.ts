import { rename, rm, stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Timed } from '../jobs/index.js';
import type { CellCheck, CellInputs, CellManifest, CheckInputs } from '../training/index.js';
import type {
  CellLocation,
  ItemCollection,
  ListedNode,
  ListedVersion,
  ModelDocument,
  NodeUsageDocument,
  PartialDocument,
  RebalanceDocument,
  SceneSummary,
  SearchRequest,
  SeriesDocument,
  SeriesRequest,
  SimilarDocument,
  SpectraDocument,
  SpectraRequest,
} from './documents.js';
import { badAnswer, fileUnreadable, JobError, jobCancelledByUser, jobLost, unreachable } from './errors.js';
import { FileBody } from './file-body.js';
import { followEvents, hasEnded, type JobDocument, type JobEvent, type LogLine } from './job-events.js';
import { errorFromResponse, type Transport } from './transport.js';

export interface Progress {
  message: string;
  /** Percent. */
  progress: number;
  tiles: { total: number; done: number; failed: number; skipped: number };
}

export interface RunHooks {
  signal?: AbortSignal;
  onProgress?(progress: Progress): void;
  /** Each line of the job's log, once. */
  onLog?(line: LogLine): void;
}

interface ScenePage {
  scenes: SceneSummary[];
  links: { rel: string; href: string }[];
}

/** Scenes that are asked for at once. */
const PAGE_SIZE = 1000;

/** A job is asked for soon after its start, then ever less often, in milliseconds. */
const FIRST_POLL_MS = 20;
const MAX_POLL_MS = 500;

/** Typed client of the API. Errors of the server are thrown with their own codes. */
export class Client {
  constructor(private readonly transport: Transport) {}

  /** Runs a process as a job and waits for its results; an aborted signal cancels the job. Throws JobError where it failed. */
  async run<Results>(
    process: string,
    inputs: object,
    hooks: RunHooks = {},
  ): Promise<{ job: string; results: Timed<Results> }> {
    return this.follow(await this.start(process, inputs), hooks);
  }

  /**
   * Sends a file with the files beside it that describe it, and ingests it, as `run` does with a scene on the server's disk. `options`
   * are those of the process.
   * Throws TW_API_TOO_LARGE, TW_CLIENT_NO_FILE.
   */
  async upload<Results>(
    path: string,
    options: object,
    hooks: RunHooks = {},
    sideFiles: readonly string[] = [],
  ): Promise<{ job: string; results: Timed<Results> }> {
    const info = await stat(path).catch((error) => {
      throw fileUnreadable.because(error, path, 'it cannot be read');
    });
    if (info.isDirectory())
      throw fileUnreadable(
        path,
        'it is the folder of a product, whose files belong together: put it into a zip or tar file',
      );
    const body = new FileBody(path, sideFiles, hooks.signal);
    const query = new URLSearchParams({ filename: body.name });
    for (const [name, value] of Object.entries(options))
      if (value !== undefined) query.set(name, queryText(value));
    const job = await this.ask<JobDocument>('POST', `/ingest?${query}`, body).catch((error) => {
      throw hooks.signal?.aborted ? hooks.signal.reason : error;
    });
    return this.follow(job, hooks);
  }

  /** The newest jobs, the newest first. */
  async jobs(limit = 100): Promise<JobDocument[]> {
    return (await this.ask<{ jobs: JobDocument[] }>('GET', `/jobs?limit=${limit}`)).jobs;
  }

  /** Throws TW_JOB_NOT_FOUND, as the others do that take the id of a job. */
  job(id: string): Promise<JobDocument> {
    return this.ask('GET', jobPath(id));
  }

  /** Lines of a job's log, from after the line `after` on. */
  async jobLog(id: string, { after = 0, limit = 1000 } = {}): Promise<LogLine[]> {
    const path = `${jobPath(id)}/logs?after=${after}&limit=${limit}`;
    return (await this.ask<{ lines: LogLine[] }>('GET', path)).lines;
  }

  /** The job's log and all that happens to it, until it has ended. A lost connection is made again. */
  jobEvents(id: string, signal?: AbortSignal): AsyncGenerator<JobEvent> {
    return followEvents(this.transport, id, signal);
  }

  /** Asks a job to stop; answers when it has. */
  cancelJob(id: string): Promise<JobDocument> {
    return this.ask('DELETE', jobPath(id));
  }

  /** Starts a job for what failed in one that has ended. Throws TW_JOB_NOTHING_FAILED, TW_JOB_NOT_ENDED. */
  retryJob(id: string): Promise<JobDocument> {
    return this.ask('POST', `${jobPath(id)}/retry`);
  }

  private async follow<Results>(
    job: JobDocument,
    hooks: RunHooks,
  ): Promise<{ job: string; results: Timed<Results> }> {
    let pause = FIRST_POLL_MS;
    const tellLog = this.logPoller(job.jobID, hooks);
    try {
      while (!hasEnded(job.status)) {
        hooks.onProgress?.(job);
        await tellLog();
        await sleep(pause, undefined, { signal: hooks.signal });
        pause = Math.min(MAX_POLL_MS, pause * 1.5);
        job = await this.ask<JobDocument>('GET', `/jobs/${job.jobID}`);
      }
    } catch (error) {
      if (unreachable.is(error)) throw jobLost.because(error, job.jobID, error.message);
      if (!hooks.signal?.aborted) throw error;
      await this.ask('DELETE', `/jobs/${job.jobID}`);
      throw jobCancelledByUser.because(error, job.jobID);
    }
    hooks.onProgress?.(job);
    await tellLog();
    if (job.status !== 'successful') {
      if (!job.error) throw badAnswer(`/jobs/${job.jobID}`, 200);
      throw new JobError(job.error, job.results);
    }
    return { job: job.jobID, results: await this.ask<Timed<Results>>('GET', `/jobs/${job.jobID}/results`) };
  }

  /** Tells the lines that have come since it was called last. */
  private logPoller(job: string, { onLog }: RunHooks): () => Promise<void> {
    let after = 0;
    return async () => {
      if (!onLog) return;
      const next = () => this.jobLog(job, { after });
      for (let lines = await next(); lines.length > 0; lines = await next()) {
        for (const line of lines) onLog(line);
        after = lines.at(-1)?.seq ?? after;
      }
    };
  }

  private start(process: string, inputs: object): Promise<JobDocument> {
    if (process !== 'ingest') return this.ask('POST', `/processes/${process}/execution`, { inputs });
    const { paths, ...options } = inputs as { paths: string[] };
    return this.ask('POST', '/ingest', { href: paths, ...options });
  }

  /** Writes a file that a job answered with to `path`, which is there as a whole or not at all. */
  download(job: string, name: string, path: string): Promise<void> {
    return this.save(`/jobs/${encodeURIComponent(job)}/results/files/${encodeURIComponent(name)}`, path);
  }

  private async save(route: string, path: string): Promise<void> {
    const part = `${path}.part`;
    try {
      const answer = await this.transport.download(route, part);
      if (answer.status !== 200) throw errorFromResponse(route, answer);
      await rename(part, path);
    } catch (error) {
      await rm(part, { force: true });
      throw error;
    }
  }

  /** What has to be read to train a model of one place here. Throws TW_TRAIN_NOTHING, TW_TRAIN_ONE_PLACE. */
  trainingPlace(inputs: CellInputs): Promise<CellManifest> {
    return this.ask('POST', '/training/place', inputs);
  }

  /** Which models cannot be trained at one place. Throws TW_TRAIN_NOTHING, TW_TRAIN_ONE_PLACE. */
  checkPlace(inputs: CheckInputs): Promise<CellCheck> {
    return this.ask('POST', '/training/check', inputs);
  }

  /** Writes a file of a tile, by its path in the API, to `path`, as `download` does. */
  saveTileFile(route: string, path: string): Promise<void> {
    return this.save(route, path);
  }

  /** One page of items. */
  search(request: SearchRequest): Promise<ItemCollection> {
    return this.ask('POST', '/search', request);
  }

  /** Values of an expression at a place, by date. Raw tiles unless `source` says otherwise. */
  series(request: SeriesRequest): Promise<SeriesDocument> {
    return this.ask('POST', '/timeseries', request);
  }

  /** The spectrum of a place on each date. Raw tiles unless `source` says otherwise. */
  spectra(request: SpectraRequest): Promise<SpectraDocument> {
    return this.ask('POST', '/spectra', request);
  }

  collections(): Promise<PartialDocument & { collections: { id: string }[] }> {
    return this.ask('GET', '/collections');
  }

  /** `asOf` is there where etcd does not answer: the nodes are as of then. */
  nodes(): Promise<{ nodes: ListedNode[]; asOf?: string }> {
    return this.ask('GET', '/cluster/nodes');
  }

  /** The usage of each node. `unanswered` lists nodes that run and do not answer, and nodes whose version does not have this route. */
  usage(): Promise<{ nodes: NodeUsageDocument[]; unanswered: string[] }> {
    return this.ask('GET', '/cluster/usage');
  }

  locate(grid: string, geocode: string): Promise<CellLocation> {
    return this.ask('GET', `/cluster/locate/${grid}/${encodeURIComponent(geocode)}`);
  }

  drain(node: string): Promise<{ id: string; draining: boolean }> {
    return this.ask('POST', `/cluster/nodes/${encodeURIComponent(node)}/drain`);
  }

  /** A node that drains takes slots again. */
  rejoin(node: string): Promise<{ id: string; draining: boolean }> {
    return this.ask('POST', `/cluster/nodes/${encodeURIComponent(node)}/join`);
  }

  rebalance(dryRun: boolean): Promise<RebalanceDocument> {
    return this.ask('POST', '/cluster/rebalance', { dryRun });
  }

  /** `damaged`: ids of those whose record is. */
  models(): Promise<{ models: { id: string }[]; damaged?: string[] }> {
    return this.ask('GET', '/models');
  }

  /** A version of a model with its card; `latest` and `best` are versions. Throws TW_STORAGE_NO_MODEL, TW_STORAGE_NO_MODEL_VERSION. */
  model<Card>(id: string, version = 'latest'): Promise<ModelDocument<Card>> {
    return this.ask('GET', versionPath(id, version));
  }

  /** The latest first. */
  async modelVersions(id: string): Promise<ListedVersion[]> {
    return (await this.ask<{ versions: ListedVersion[] }>('GET', `${modelPath(id)}/versions`)).versions;
  }

  /** Writes a file of a version of a model, such as `model.onnx`, to `path`, as `download` does. */
  saveModelFile(id: string, version: string, file: string, path: string): Promise<void> {
    return this.save(`${versionPath(id, version)}/${file}`, path);
  }

  /** The number of versions that went: all, or the one that is named; 0 where the record of the model was damaged. */
  deleteModel(id: string, version?: string): Promise<number> {
    const path = version === undefined ? modelPath(id) : versionPath(id, version);
    return this.delete(path, 'tilewright-deleted-versions');
  }

  /** Places of the same collection that look like that of a tile, or like a cell of a collection, the nearest first. */
  similar(
    place: { tile: string } | { collection: string; geocode: string },
    limit?: number,
  ): Promise<SimilarDocument> {
    return this.ask('POST', '/similar', { ...place, limit });
  }

  health(): Promise<object> {
    return this.ask('GET', '/health');
  }

  /** The collection, item, model or job of this id, or null. Throws TW_QUERY_UNANSWERED where no node answers for such a tile. */
  async find(id: string): Promise<{ kind: string; document: unknown } | null> {
    const name = encodeURIComponent(id);
    const { features, partial } = await this.search({ ids: [id] });
    if (features.length > 0) return { kind: 'item', document: features[0] };
    for (const [kind, path] of [
      ['collection', `/collections/${name}`],
      ['model', `/models/${name}`],
      ['job', `/jobs/${name}`],
    ]) {
      const { status, body } = await this.transport('GET', path);
      if (status === 200) return { kind, document: body };
    }
    // It may be there: the route of one tile says that nobody knows.
    if (partial) return { kind: 'item', document: await this.ask('GET', itemPath(id)) };
    return null;
  }

  /** The scenes of a collection, in the order of their ids. */
  async scenes(collection: string): Promise<SceneSummary[]> {
    const path = `/collections/${encodeURIComponent(collection)}/scenes`;
    const all: SceneSummary[] = [];
    const query = new URLSearchParams({ limit: String(PAGE_SIZE) });
    for (;;) {
      const { scenes, links } = await this.ask<ScenePage>('GET', `${path}?${query}`);
      all.push(...scenes);
      const next = links.find(({ rel }) => rel === 'next');
      if (!next) return all;
      query.set('token', new URL(next.href).searchParams.get('token') ?? '');
    }
  }

  /** The number of tiles that went: 1. */
  deleteTile(id: string): Promise<number> {
    return this.delete(itemPath(id));
  }

  /** The number of tiles that went. */
  deleteScene(collection: string, scene: string): Promise<number> {
    return this.delete(`/collections/${encodeURIComponent(collection)}/scenes/${encodeURIComponent(scene)}`);
  }

  /** The number of tiles that went. */
  deleteCollection(id: string): Promise<number> {
    return this.delete(`/collections/${encodeURIComponent(id)}`);
  }

  private async delete(path: string, counted = 'tilewright-deleted-tiles'): Promise<number> {
    const answer = await this.transport('DELETE', path);
    if (answer.status !== 204) throw errorFromResponse(path, answer);
    return Number(answer.headers[counted]);
  }

  private async ask<T>(method: string, path: string, body?: unknown): Promise<T> {
    const answer = await this.transport(method, path, body);
    if (answer.status < 400 && answer.body !== null) return answer.body as T;
    throw errorFromResponse(path, answer);
  }
}

const modelPath = (id: string) => `/models/${encodeURIComponent(id)}`;
const versionPath = (id: string, version: string) =>
  `${modelPath(id)}/versions/${encodeURIComponent(version)}`;
/** A tile's id begins with that of its collection, which has no underscore. */
const itemPath = (id: string) =>
  `/collections/${encodeURIComponent(id.split('_', 1)[0]!)}/items/${encodeURIComponent(id)}`;
const jobPath = (id: string) => `/jobs/${encodeURIComponent(id)}`;

/** "red=3,nir=4" for `{red: 3, nir: 4}`. */
function queryText(value: unknown): string {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return String(value);
  return Object.entries(value)
    .map(([name, one]) => `${name}=${one}`)
    .join(',');
}
