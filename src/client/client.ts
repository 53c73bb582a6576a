/** The client: a method for each request of the API, and jobs that it follows to their results. */
import { rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SubscriptionDocument } from '../api/index.js';
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
import { followEvents, hasEnded, type JobDocument, type JobEvent, type LogLine } from './jobs.js';
import { errorFromResponse, FileBody, type Transport } from './transport.js';

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

interface Link {
  rel: string;
  href: string;
}

/** Scenes or models of a page. */
const PAGE_SIZE = 1000;
const LOG_PAGE = 1000;

/** The interval of polls grows from the first to the second value. */
const FIRST_POLL_MS = 20;
const MAX_POLL_MS = 500;

/** Makes an error of the temporary file name what the user gave: the path, or its folder if that is missing. */
function nameOutput(error: NodeJS.ErrnoException, path: string): Error {
  if (error.path?.startsWith(path)) error.path = error.code === 'ENOENT' ? dirname(path) : path;
  return error;
}

/** Typed client of the API. Throws errors of the server with their own codes. */
export class Client {
  constructor(private readonly transport: Transport) {}

  /** Runs a process as a job and waits for its results. An aborted signal cancels the job. Throws JobError if the job failed. */
  async run<Results>(
    process: string,
    inputs: object,
    hooks: RunHooks = {},
  ): Promise<{ job: string; results: Timed<Results> }> {
    return this.follow(await this.start(process, inputs), hooks);
  }

  /**
   * Uploads a file with its side files and ingests it. `options` are those of the process `ingest`. Throws JobError, TW_API_TOO_LARGE,
   * TW_CLIENT_NO_FILE.
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
      throw fileUnreadable(path, 'it is the folder of a product: put it into a zip or tar file');
    const body = new FileBody(path, sideFiles, hooks.signal);
    const query = new URLSearchParams({ filename: body.name });
    for (const [name, value] of Object.entries(options))
      if (value !== undefined) query.set(name, queryText(value));
    const job = await this.ask<JobDocument>('POST', `/ingest?${query}`, 'jobID', body).catch((error) => {
      throw hooks.signal?.aborted ? hooks.signal.reason : error;
    });
    return this.follow(job, hooks);
  }

  /** The latest jobs, the newest first. */
  async jobs(limit = 100): Promise<JobDocument[]> {
    return (await this.ask<{ jobs: JobDocument[] }>('GET', `/jobs?limit=${limit}`, 'jobs')).jobs;
  }

  /** Throws TW_JOB_NOT_FOUND, like the other methods with the id of a job. */
  job(id: string): Promise<JobDocument> {
    return this.ask('GET', jobPath(id), 'jobID');
  }

  /** The lines of a job's log so far that follow the line `after`, requested page by page. */
  async *jobLog(id: string, after = 0): AsyncGenerator<LogLine> {
    for (let last = after; ; ) {
      const path = `${jobPath(id)}/logs?after=${last}&limit=${LOG_PAGE}`;
      const { lines } = await this.ask<{ lines: LogLine[] }>('GET', path, 'lines');
      yield* lines;
      if (lines.length < LOG_PAGE) return;
      last = lines.at(-1)!.seq;
    }
  }

  /** The states, progress and log of a job until it ends. Reconnects after a lost connection. */
  jobEvents(id: string, signal?: AbortSignal): AsyncGenerator<JobEvent> {
    return followEvents(this.transport, id, signal);
  }

  /** Cancels a job and waits until it has stopped. */
  cancelJob(id: string): Promise<JobDocument> {
    return this.ask('DELETE', jobPath(id), 'jobID');
  }

  /** Starts a job that repeats the failed part of an ended job. Throws TW_JOB_NOTHING_FAILED, TW_JOB_NOT_ENDED. */
  retryJob(id: string): Promise<JobDocument> {
    return this.ask('POST', `${jobPath(id)}/retry`, 'jobID');
  }

  /** In the order of their ids. */
  async subscriptions(): Promise<SubscriptionDocument[]> {
    return (
      await this.ask<{ subscriptions: SubscriptionDocument[] }>('GET', '/subscriptions', 'subscriptions')
    ).subscriptions;
  }

  /** Throws TW_SUBSCRIPTION_NOT_FOUND, like the other methods with the id of a subscription. */
  subscription(id: string): Promise<SubscriptionDocument> {
    return this.ask('GET', subscriptionPath(id), 'id');
  }

  /** Creates a subscription. Throws TW_SUBSCRIPTION_EXISTS and errors of its inputs. */
  subscribe(request: { name?: string; every: string; inputs: object }): Promise<SubscriptionDocument> {
    return this.ask('POST', '/subscriptions', 'id', request);
  }

  changeSubscription(
    id: string,
    change: { state?: 'active' | 'paused'; every?: string },
  ): Promise<SubscriptionDocument> {
    return this.ask('PATCH', subscriptionPath(id), 'id', change);
  }

  async removeSubscription(id: string): Promise<void> {
    await this.delete(subscriptionPath(id));
  }

  /** Starts a round, and returns its job. Throws TW_SUBSCRIPTION_RUNNING. */
  runSubscription(id: string): Promise<JobDocument> {
    return this.ask('POST', `${subscriptionPath(id)}/run`, 'jobID');
  }

  private async follow<Results>(
    job: JobDocument,
    hooks: RunHooks,
  ): Promise<{ job: string; results: Timed<Results> }> {
    let pause = FIRST_POLL_MS;
    const pollLog = this.logPoller(job.jobID, hooks);
    try {
      while (!hasEnded(job.status)) {
        hooks.onProgress?.(job);
        await pollLog();
        await sleep(pause, undefined, { signal: hooks.signal });
        pause = Math.min(MAX_POLL_MS, pause * 1.5);
        job = await this.ask<JobDocument>('GET', `/jobs/${job.jobID}`, 'jobID');
      }
    } catch (error) {
      if (unreachable.is(error)) throw jobLost.because(error, job.jobID, error.message);
      if (!hooks.signal?.aborted) throw error;
      await this.ask<JobDocument>('DELETE', `/jobs/${job.jobID}`, 'jobID');
      throw jobCancelledByUser.because(error, job.jobID);
    }
    hooks.onProgress?.(job);
    await pollLog();
    if (job.status !== 'successful') {
      if (!job.error) throw badAnswer(`/jobs/${job.jobID}`, 200);
      throw new JobError(job.error, job.results);
    }
    return {
      job: job.jobID,
      results: await this.ask<Timed<Results>>('GET', `/jobs/${job.jobID}/results`, undefined),
    };
  }

  /** Returns a function that passes new lines of the log to `onLog`. */
  private logPoller(job: string, { onLog }: RunHooks): () => Promise<void> {
    let after = 0;
    return async () => {
      if (!onLog) return;
      for await (const line of this.jobLog(job, after)) {
        onLog(line);
        after = line.seq;
      }
    };
  }

  private start(process: string, inputs: object): Promise<JobDocument> {
    if (process !== 'ingest') return this.ask('POST', `/processes/${process}/execution`, 'jobID', { inputs });
    const { paths, ...options } = inputs as { paths: string[] };
    return this.ask('POST', '/ingest', 'jobID', { href: paths, ...options });
  }

  /** Downloads a result file of a job to `path`. An incomplete file is never left at `path`. */
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
      throw nameOutput(error as NodeJS.ErrnoException, path);
    }
  }

  /** The files that are needed to train a model of one cell on this machine. Throws TW_TRAIN_NOTHING, TW_TRAIN_ONE_PLACE. */
  trainingPlace(inputs: CellInputs): Promise<CellManifest> {
    return this.ask('POST', '/training/place', 'dates', inputs);
  }

  /** The models that cannot be trained on one cell. Throws TW_TRAIN_NOTHING, TW_TRAIN_ONE_PLACE. */
  checkPlace(inputs: CheckInputs): Promise<CellCheck> {
    return this.ask('POST', '/training/check', 'skipped', inputs);
  }

  /** Downloads a file of a tile, given by its path in the API, to `path`. Works like `download`. */
  saveTileFile(route: string, path: string): Promise<void> {
    return this.save(route, path);
  }

  /** One page of items. */
  search(request: SearchRequest): Promise<ItemCollection> {
    return this.ask('POST', '/search', 'features', request);
  }

  /** Values of an expression at a point or polygon, by date. Uses raw tiles by default. */
  series(request: SeriesRequest): Promise<SeriesDocument> {
    return this.ask('POST', '/timeseries', 'series', request);
  }

  /** The spectrum of a point or polygon on each date. Uses raw tiles by default. */
  spectra(request: SpectraRequest): Promise<SpectraDocument> {
    return this.ask('POST', '/spectra', 'spectra', request);
  }

  collections(): Promise<PartialDocument & { collections: { id: string }[] }> {
    return this.ask('GET', '/collections', 'collections');
  }

  /** `asOf` is present if etcd does not answer: the nodes are as of that time. */
  nodes(): Promise<{ nodes: ListedNode[]; asOf?: string }> {
    return this.ask('GET', '/cluster/nodes', 'nodes');
  }

  /** The usage of each node. `unanswered` lists running nodes that do not answer, or whose version lacks this route. */
  usage(): Promise<{ nodes: NodeUsageDocument[]; unanswered: string[] }> {
    return this.ask('GET', '/cluster/usage', 'nodes');
  }

  locate(grid: string, geocode: string): Promise<CellLocation> {
    return this.ask('GET', `/cluster/locate/${grid}/${encodeURIComponent(geocode)}`, 'owners');
  }

  drain(node: string): Promise<{ id: string; draining: boolean }> {
    return this.ask('POST', `/cluster/nodes/${encodeURIComponent(node)}/drain`, 'id');
  }

  /** Stops draining a node, so that it receives slots again. */
  rejoin(node: string): Promise<{ id: string; draining: boolean }> {
    return this.ask('POST', `/cluster/nodes/${encodeURIComponent(node)}/join`, 'id');
  }

  rebalance(dryRun: boolean): Promise<RebalanceDocument> {
    return this.ask('POST', '/cluster/rebalance', 'nodes', { dryRun });
  }

  /** `damaged` has the ids of models with a damaged record. */
  async models(): Promise<{ models: { id: string }[]; damaged?: string[] }> {
    const pages = await this.pages<{ models: { id: string }[]; damaged?: string[] }>('/models', 'models');
    const damaged = pages.flatMap((page) => page.damaged ?? []);
    return { models: pages.flatMap(({ models }) => models), ...(damaged.length > 0 && { damaged }) };
  }

  /** A version of a model with its card; `latest` and `best` are accepted. Throws TW_STORAGE_NO_MODEL, TW_STORAGE_NO_MODEL_VERSION. */
  model<Card>(id: string, version = 'latest'): Promise<ModelDocument<Card>> {
    return this.ask('GET', versionPath(id, version), 'version');
  }

  /** The latest first. */
  async modelVersions(id: string): Promise<ListedVersion[]> {
    return (await this.ask<{ versions: ListedVersion[] }>('GET', `${modelPath(id)}/versions`, 'versions'))
      .versions;
  }

  /** Downloads a file of a version of a model, such as `model.onnx`, to `path`. Works like `download`. */
  saveModelFile(id: string, version: string, file: string, path: string): Promise<void> {
    return this.save(`${versionPath(id, version)}/${file}`, path);
  }

  /** Deletes a model, or one version. Returns the number of deleted versions; 0 if the record of the model was damaged. */
  deleteModel(id: string, version?: string): Promise<number> {
    const path = version === undefined ? modelPath(id) : versionPath(id, version);
    return this.delete(path, 'tilewright-deleted-versions');
  }

  /** Cells of the same collection that look like the cell of a tile or a given cell, the most similar first. */
  similar(
    place: { tile: string } | { collection: string; geocode: string },
    limit?: number,
  ): Promise<SimilarDocument> {
    return this.ask('POST', '/similar', 'similar', { ...place, limit });
  }

  health(): Promise<{ status: string }> {
    return this.ask('GET', '/health', 'status');
  }

  /** The collection, item, model or job with this id, or null. Throws TW_QUERY_UNANSWERED if no node answers for a tile with this id. */
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
    // The tile may exist on a node that does not answer. The route of a single tile then throws.
    if (partial) return { kind: 'item', document: await this.ask<{ id: string }>('GET', itemPath(id), 'id') };
    return null;
  }

  /** The scenes of a collection, ordered by id. */
  async scenes(collection: string): Promise<SceneSummary[]> {
    const path = `/collections/${encodeURIComponent(collection)}/scenes`;
    const pages = await this.pages<{ scenes: SceneSummary[] }>(path, 'scenes');
    return pages.flatMap(({ scenes }) => scenes);
  }

  /** All pages of a list. */
  private async pages<T extends object>(path: string, member: keyof T & string): Promise<T[]> {
    const all: T[] = [];
    const query = new URLSearchParams({ limit: String(PAGE_SIZE) });
    for (;;) {
      const page = await this.ask<T & { links: Link[] }>('GET', `${path}?${query}`, member);
      all.push(page);
      const next = page.links.find(({ rel }) => rel === 'next');
      if (!next) return all;
      query.set('token', new URL(next.href).searchParams.get('token') ?? '');
    }
  }

  /** Returns the number of deleted tiles, which is 1. */
  deleteTile(id: string): Promise<number> {
    return this.delete(itemPath(id));
  }

  /** Returns the number of deleted tiles. */
  deleteScene(collection: string, scene: string): Promise<number> {
    return this.delete(`/collections/${encodeURIComponent(collection)}/scenes/${encodeURIComponent(scene)}`);
  }

  /** Returns the number of deleted tiles. */
  deleteCollection(id: string): Promise<number> {
    return this.delete(`/collections/${encodeURIComponent(id)}`);
  }

  private async delete(path: string, counted = 'tilewright-deleted-tiles'): Promise<number> {
    const answer = await this.transport('DELETE', path);
    if (answer.status !== 204) throw errorFromResponse(path, answer);
    return Number(answer.headers[counted]);
  }

  /** `member` is a member that every answer of this route has. An answer without it is not from tilewright: TW_CLIENT_BAD_ANSWER. */
  private async ask<T>(
    method: string,
    path: string,
    member: (keyof T & string) | undefined,
    body?: unknown,
  ): Promise<T> {
    const answer = await this.transport(method, path, body);
    const document = Object(answer.body);
    const isFromTilewright =
      answer.body !== null && (member === undefined || (document[member] ?? undefined) !== undefined);
    if (answer.status < 400 && isFromTilewright) return answer.body as T;
    throw errorFromResponse(path, answer);
  }
}

const modelPath = (id: string) => `/models/${encodeURIComponent(id)}`;
const versionPath = (id: string, version: string) =>
  `${modelPath(id)}/versions/${encodeURIComponent(version)}`;
/** A tile's id begins with the id of its collection, which has no underscore. */
const itemPath = (id: string) =>
  `/collections/${encodeURIComponent(id.split('_', 1)[0]!)}/items/${encodeURIComponent(id)}`;
const subscriptionPath = (id: string) => `/subscriptions/${encodeURIComponent(id)}`;
const jobPath = (id: string) => `/jobs/${encodeURIComponent(id)}`;

/** Writes a value as text, and `{red: 3, nir: 4}` as "red=3,nir=4". */
function queryText(value: unknown): string {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return String(value);
  return Object.entries(value)
    .map(([name, one]) => `${name}=${one}`)
    .join(',');
}
