import { rename, rm, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { TilewrightError } from '../errors.js';
import type { FilterParams } from '../query/index.js';
import { badAnswer, JobError, noFile, stopped } from './errors.js';
import { FileBody } from './send-file.js';
import type { Answer, Transport } from './transport.js';

export interface Progress {
  message: string;
  /** Percent. */
  progress: number;
  tiles: { total: number; done: number; failed: number; skipped: number };
}

export interface RunHooks {
  signal?: AbortSignal;
  onProgress?(progress: Progress): void;
}

export interface SearchRequest extends FilterParams {
  limit?: number;
  token?: string;
}

export interface ItemCollection {
  type: 'FeatureCollection';
  features: { id: string; [member: string]: unknown }[];
  numberMatched: number;
  numberReturned: number;
  links: { rel: string; href: string; body?: { token?: string } }[];
}

interface JobStatus extends Progress {
  jobID: string;
  status: 'accepted' | 'running' | 'successful' | 'failed' | 'dismissed';
  error?: { code: string; message: string };
  /** Of a failed job that has some. */
  results?: unknown;
}

/** A scene as the store holds it. Times as in RFC 3339. */
export interface SceneSummary {
  id: string;
  collection: string;
  datetime: string;
  end_datetime: string;
  platform: string | null;
  /** Number of its tiles. */
  tiles: number;
  warnings: string[];
  committed: string;
}

interface ScenePage {
  scenes: SceneSummary[];
  links: { rel: string; href: string }[];
}

/** Scenes that are asked for at once. */
const PAGE = 1000;

/** A job is asked for soon after its start, then ever less often, in milliseconds. */
const FIRST_POLL = 20;
const LAST_POLL = 500;

/** Typed client of the API. Errors of the server are thrown with their own codes. */
export class Client {
  constructor(private readonly transport: Transport) {}

  /** Runs a process as a job and waits for its results; an aborted signal cancels the job. Throws JobError where it failed. */
  async run<Results>(
    process: string,
    inputs: object,
    hooks: RunHooks = {},
  ): Promise<{ job: string; results: Results }> {
    return this.follow(await this.start(process, inputs), hooks);
  }

  /**
   * Sends a file and ingests it, as `run` does with a scene on the server's disk. `options` are those of the process.
   * Throws TW_API_TOO_LARGE, TW_CLIENT_NO_FILE.
   */
  async upload<Results>(
    path: string,
    options: object,
    hooks: RunHooks = {},
  ): Promise<{ job: string; results: Results }> {
    const info = await stat(path).catch((error) => {
      throw noFile.because(error, path, 'it cannot be read');
    });
    if (info.isDirectory()) throw noFile(path, 'it is a folder: put it into a zip or tar file');
    const query = new URLSearchParams({ filename: basename(path) });
    for (const [name, value] of Object.entries(options))
      if (value !== undefined) query.set(name, queryText(value));
    const body = new FileBody(path, hooks.signal);
    const job = await this.ask<JobStatus>('POST', `/ingest?${query}`, body).catch((error) => {
      throw hooks.signal?.aborted ? hooks.signal.reason : error;
    });
    return this.follow(job, hooks);
  }

  private async follow<Results>(job: JobStatus, hooks: RunHooks): Promise<{ job: string; results: Results }> {
    let pause = FIRST_POLL;
    try {
      while (job.status === 'accepted' || job.status === 'running') {
        hooks.onProgress?.(job);
        await sleep(pause, undefined, { signal: hooks.signal });
        pause = Math.min(LAST_POLL, pause * 1.5);
        job = await this.ask<JobStatus>('GET', `/jobs/${job.jobID}`);
      }
    } catch (error) {
      if (!hooks.signal?.aborted) throw error;
      await this.ask('DELETE', `/jobs/${job.jobID}`);
      throw stopped.because(error, job.jobID);
    }
    hooks.onProgress?.(job);
    if (job.status !== 'successful') {
      if (!job.error) throw badAnswer(`/jobs/${job.jobID}`, 200);
      throw new JobError(job.error, job.results);
    }
    return { job: job.jobID, results: await this.ask<Results>('GET', `/jobs/${job.jobID}/results`) };
  }

  private start(process: string, inputs: object): Promise<JobStatus> {
    if (process !== 'ingest') return this.ask('POST', `/processes/${process}/execution`, { inputs });
    const { paths, ...options } = inputs as { paths: string[] };
    return this.ask('POST', '/ingest', { href: paths, ...options });
  }

  /** Writes a file that a job answered with to `path`, which is there as a whole or not at all. */
  async download(job: string, name: string, path: string): Promise<void> {
    const route = `/jobs/${encodeURIComponent(job)}/results/files/${encodeURIComponent(name)}`;
    const part = `${path}.part`;
    try {
      const answer = await this.transport('GET', route, undefined, part);
      if (answer.status !== 200) throw failure(route, answer);
      await rename(part, path);
    } catch (error) {
      await rm(part, { force: true });
      throw error;
    }
  }

  /** One page of items. */
  search(request: SearchRequest): Promise<ItemCollection> {
    return this.ask('POST', '/search', request);
  }

  async collections(): Promise<{ id: string }[]> {
    return (await this.ask<{ collections: { id: string }[] }>('GET', '/collections')).collections;
  }

  async models(): Promise<{ id: string }[]> {
    return (await this.ask<{ models: { id: string }[] }>('GET', '/models')).models;
  }

  health(): Promise<object> {
    return this.ask('GET', '/health');
  }

  /** The collection, item, model or job of this id, or null. */
  async find(id: string): Promise<{ kind: string; document: unknown } | null> {
    const name = encodeURIComponent(id);
    const { features } = await this.search({ ids: [id] });
    if (features.length > 0) return { kind: 'item', document: features[0] };
    for (const [kind, path] of [
      ['collection', `/collections/${name}`],
      ['model', `/models/${name}`],
      ['job', `/jobs/${name}`],
    ]) {
      const { status, body } = await this.transport('GET', path);
      if (status === 200) return { kind, document: body };
    }
    return null;
  }

  /** The scenes of a collection, in the order of their ids. */
  async scenes(collection: string): Promise<SceneSummary[]> {
    const path = `/collections/${encodeURIComponent(collection)}/scenes`;
    const all: SceneSummary[] = [];
    const query = new URLSearchParams({ limit: String(PAGE) });
    for (;;) {
      const { scenes, links } = await this.ask<ScenePage>('GET', `${path}?${query}`);
      all.push(...scenes);
      const next = links.find(({ rel }) => rel === 'next');
      if (!next) return all;
      query.set('token', new URL(next.href).searchParams.get('token') ?? '');
    }
  }

  /** The number of tiles that went: 1. The tile's id begins with that of its collection, which has no underscore. */
  deleteTile(id: string): Promise<number> {
    const [collection] = id.split('_', 1);
    return this.delete(`/collections/${encodeURIComponent(collection)}/items/${encodeURIComponent(id)}`);
  }

  /** The number of tiles that went. */
  deleteScene(collection: string, scene: string): Promise<number> {
    return this.delete(`/collections/${encodeURIComponent(collection)}/scenes/${encodeURIComponent(scene)}`);
  }

  /** The number of tiles that went. */
  deleteCollection(id: string): Promise<number> {
    return this.delete(`/collections/${encodeURIComponent(id)}`);
  }

  private async delete(path: string): Promise<number> {
    const answer = await this.transport('DELETE', path);
    if (answer.status !== 204) throw failure(path, answer);
    return Number(answer.headers['tilewright-deleted-tiles']);
  }

  private async ask<T>(method: string, path: string, body?: unknown): Promise<T> {
    const answer = await this.transport(method, path, body);
    if (answer.status < 400 && answer.body !== null) return answer.body as T;
    throw failure(path, answer);
  }
}

/** "red=3,nir=4" for `{red: 3, nir: 4}`. */
function queryText(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value);
  return Object.entries(value)
    .map(([name, one]) => `${name}=${one}`)
    .join(',');
}

/** The server's error with its own code, or TW_CLIENT_BAD_ANSWER. */
function failure(path: string, { status, body }: Answer): TilewrightError {
  const problem = body as { code?: string; detail?: string } | null;
  if (problem?.code) return new TilewrightError(problem.code, status, problem.detail ?? problem.code);
  return badAnswer(path, status);
}
