import { setTimeout as sleep } from 'node:timers/promises';
import { TilewrightError } from '../errors.js';
import type { FilterParams } from '../query/index.js';
import { badAnswer, stopped } from './errors.js';
import type { Transport } from './transport.js';

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
}

/** A job is asked for soon after its start, then ever less often, in milliseconds. */
const FIRST_POLL = 20;
const LAST_POLL = 500;

/** Typed client of the API. Errors of the server are thrown with their own codes. */
export class Client {
  constructor(private readonly transport: Transport) {}

  /** Runs a process as a job and waits for its results; an aborted signal cancels the job. */
  async run<Results>(
    process: string,
    inputs: object,
    hooks: RunHooks = {},
  ): Promise<{ job: string; results: Results }> {
    let job = await this.start(process, inputs);
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
      throw new TilewrightError(job.error.code, 500, job.error.message);
    }
    return { job: job.jobID, results: await this.ask<Results>('GET', `/jobs/${job.jobID}/results`) };
  }

  private start(process: string, inputs: object): Promise<JobStatus> {
    if (process !== 'ingest') return this.ask('POST', `/processes/${process}/execution`, { inputs });
    const { paths, ...options } = inputs as { paths: string[] };
    return this.ask('POST', '/ingest', { href: paths, ...options });
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

  private async ask<T>(method: string, path: string, body?: unknown): Promise<T> {
    const answer = await this.transport(method, path, body);
    if (answer.status < 400 && answer.body !== null) return answer.body as T;
    const problem = answer.body as { code?: string; detail?: string } | null;
    if (problem?.code) throw new TilewrightError(problem.code, answer.status, problem.detail ?? problem.code);
    throw badAnswer(path, answer.status);
  }
}
