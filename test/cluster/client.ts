/** Requests of the clients of a test, with time limits, and with the effect that a failure has on the requested change. */
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../../src/errors.js';
import type { FoundTile } from './observe.js';

export const TOKEN = 'a token for writes';
export const COLLECTION = 'scenes';

/** A request without the expected answer. */
export class RequestFailed extends Error {
  constructor(
    message: string,
    /** Undefined if there was no answer. */
    readonly status?: number,
    readonly code?: string,
  ) {
    super(message);
  }
}

interface Asked {
  method?: string;
  body?: unknown;
  headers?: Record<string, string>;
  /** ms. */
  timeoutMs?: number;
}

export async function ask(url: string, path: string, asked: Asked = {}): Promise<Response> {
  const { method = 'GET', body, headers = {}, timeoutMs = 15_000 } = asked;
  const type: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' };
  const response = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${TOKEN}`, ...type, ...headers },
    body: body === undefined ? null : JSON.stringify(body),
    signal: AbortSignal.timeout(timeoutMs),
  }).catch((error: Error) => {
    throw new RequestFailed(`${path}: ${messageOf(error.cause ?? error)}`);
  });
  if (response.ok) return response;
  const text = await response.text().catch(() => '');
  throw new RequestFailed(`${path}: ${response.status} ${text.slice(0, 300)}`, response.status, codeIn(text));
}

export async function askJson<T>(url: string, path: string, asked?: Asked): Promise<T> {
  const response = await ask(url, path, asked);
  return (await response.json().catch((error: Error) => {
    throw new RequestFailed(`${path}: ${error.message}`);
  })) as T;
}

function codeIn(text: string): string | undefined {
  return /"code":\s*"(TW_[A-Z0-9_]+)"/.exec(text)?.[1];
}

interface Answer {
  numberMatched: number;
  partial?: boolean;
  links: { rel: string; body?: { token?: string } }[];
  features: { id: string; properties: { scene: string; version: string; datetime: string } }[];
}

export interface Found {
  matched: number;
  partial: boolean;
  tiles: FoundTile[];
}

const FIELDS = {
  include: ['properties.scene', 'properties.version', 'properties.datetime'],
  exclude: ['assets', 'links'],
};

interface Wanted {
  /** Items in a page. */
  limit?: number;
  /** ms. */
  timeoutMs?: number;
  collection?: string;
  source?: string;
}

/** All tiles of a collection that a node finds. */
export async function findAll(
  url: string,
  { limit = 10_000, timeoutMs = 15_000, collection = COLLECTION, source = 'raw' }: Wanted = {},
): Promise<Found> {
  const found: Found = { matched: 0, partial: false, tiles: [] };
  for (let token: string | undefined, isFirst = true; isFirst || token !== undefined; isFirst = false) {
    const body = { collections: [collection], source, limit, fields: FIELDS, ...(token && { token }) };
    const page = await askJson<Answer>(url, '/search', { method: 'POST', body, timeoutMs });
    found.matched = page.numberMatched;
    found.partial ||= page.partial === true;
    for (const {
      id,
      properties: { scene, version, datetime },
    } of page.features)
      found.tiles.push({ id, scene, version, delivery: deliveryOf(datetime) });
    token = page.links.find(({ rel }) => rel === 'next')?.body?.token;
  }
  return found;
}

/** Deliveries differ in the second of their date. */
export const dateOf = (delivery: number) => `2024-06-01T10:00:${`${delivery}`.padStart(2, '0')}.000Z`;
const deliveryOf = (date: string) => Number(date.slice(17, 19));

interface Job {
  jobID: string;
  status: 'accepted' | 'running' | 'successful' | 'failed' | 'dismissed';
  error?: { code: string; message: string };
  results?: { failed?: { code?: string; message?: string; error?: unknown }[] };
}

export interface SceneToIngest {
  id: string;
  path: string;
  delivery: number;
  collection?: string;
  /** The information that models need: the scale of the pixel values, and the cloud band. */
  extras?: { scale: number; maskBand: number };
}

/** Starts a job that ingests one scene; a repeated request with the same `key` returns the same job. */
export async function startIngest(url: string, scene: SceneToIngest, key: string): Promise<string> {
  const { id, path: href, delivery, collection = COLLECTION, extras = {} } = scene;
  const body = { href, id, collection, precision: 4, datetime: dateOf(delivery), ...extras };
  const headers = { 'idempotency-key': key };
  const { jobID } = await askJson<Job>(url, '/ingest', { method: 'POST', body, headers, timeoutMs: 5000 });
  return jobID;
}

/** Starts a job of a process; a repeated request with the same `key` returns the same job. */
export async function startJob(url: string, process: string, inputs: object, key: string): Promise<string> {
  const headers = { 'idempotency-key': key };
  const path = `/processes/${process}/execution`;
  const { jobID } = await askJson<Job>(url, path, {
    ...{ method: 'POST', body: { inputs }, headers, timeoutMs: 5000 },
  });
  return jobID;
}

/** Ids of the tiles that a job has stacked. */
export async function stackedTiles(url: string, job: string): Promise<string[]> {
  const { files } = await askJson<{ files: { times: { tile: string }[] }[] }>(url, `/jobs/${job}/results`);
  return files.flatMap(({ times }) => times.map(({ tile }) => tile));
}

export type Outcome = { outcome: 'done' | 'refused' | 'unknown'; why?: string };

/** Errors after which a change may have been made. */
const UNKNOWN = [
  'TW_DHT_OUTCOME_UNKNOWN',
  'TW_DHT_BEHIND',
  'TW_DHT_NOT_NOTED',
  'TW_JOB_INTERRUPTED',
  'TW_JOB_CRASHES',
];

/** The result of a job; undefined while it runs. */
export async function outcomeOf(url: string, job: string): Promise<Outcome | undefined> {
  const answer = await askJson<Job>(url, `/jobs/${job}`, { timeoutMs: 5000 });
  if (answer.status === 'successful') return { outcome: 'done' };
  if (answer.status !== 'failed' && answer.status !== 'dismissed') return undefined;
  const why = JSON.stringify({ error: answer.error, results: answer.results });
  return { outcome: isUnknown(why) ? 'unknown' : 'refused', why };
}

/** A job that fails completely names the reason of its only input in words, without its code. */
const UNKNOWN_WORDS = 'it is not known whether';

export const isUnknown = (why: string) =>
  UNKNOWN.some((code) => why.includes(code)) || why.includes(UNKNOWN_WORDS);

/** Deletes a scene. */
export async function deleteScene(url: string, scene: string): Promise<Outcome> {
  try {
    await ask(url, `/collections/${COLLECTION}/scenes/${scene}`, { method: 'DELETE', timeoutMs: 45_000 });
    return { outcome: 'done' };
  } catch (error) {
    if (!(error instanceof RequestFailed)) throw error;
    const why = error.message;
    const isRefused = error.status !== undefined && error.status !== 500 && !isUnknown(why);
    return { outcome: isRefused ? 'refused' : 'unknown', why };
  }
}

/** Waits until a condition is met. */
export async function until(what: string, limit: number, is: () => Promise<boolean>): Promise<void> {
  let last: unknown;
  for (const startedAt = performance.now(); ; await sleep(100)) {
    const isSo = await is().catch((error: unknown) => {
      last = error;
      return false;
    });
    if (isSo) return;
    if (performance.now() - startedAt > limit)
      throw new Error(`not within ${limit} ms: ${what}${last ? ` (${messageOf(last)})` : ''}`);
  }
}
