import { coordinationRefused } from '../errors.js';
import type { EtcdHttpClient } from './etcd-http-client.js';
import { parseHeader, parseRange } from './etcd-responses.js';

export interface EtcdLimits {
  /** Quota of the database in bytes (etcd 3.4 does not report it). */
  quotaBytes?: number;
  /** Number of revisions from which on a history that was never compacted causes a warning. */
  maxRevisions?: number;
}

/** The default of etcd. */
const DEFAULT_QUOTA_BYTES = 2 * 1024 ** 3;
const MAX_HISTORY_REVISIONS = 10_000;
const QUOTA_WARNING_RATIO = 0.6;
const ALL_KEYS = Buffer.from([0]).toString('base64');
/** `/tilewright/`, and the first key after all keys that begin with it. */
const OWN_KEY_RANGE = ['/tilewright/', '/tilewright0'].map((key) => Buffer.from(key).toString('base64'));

/**
 * Warnings for the operator of etcd, one sentence each: a nearly full database, history that is never compacted, keys of other programs.
 */
export async function etcdHealthWarnings(
  client: EtcdHttpClient,
  { quotaBytes = DEFAULT_QUOTA_BYTES, maxRevisions = MAX_HISTORY_REVISIONS }: EtcdLimits = {},
): Promise<string[]> {
  const warnings: string[] = [];
  const { revision, fields } = await query(client, 'maintenance/status', {}, parseHeader);
  const share = Number(fields.dbSize) / quotaBytes;
  if (share >= QUOTA_WARNING_RATIO)
    warnings.push(
      `the database of etcd is at ${Math.round(share * 100)} % of its quota; compact and defragment it, or raise the quota`,
    );

  if (revision > maxRevisions && !(await wasCompacted(client)))
    warnings.push(
      `etcd keeps the whole history of ${revision} revisions; start it with --auto-compaction-retention=1h`,
    );

  const all = await count(client, ALL_KEYS, ALL_KEYS);
  const others = all - (await count(client, OWN_KEY_RANGE[0]!, OWN_KEY_RANGE[1]!));
  if (others > 0)
    warnings.push(`etcd holds ${others} keys of other programs, which share its quota with tilewright`);
  return warnings;
}

/** True if the first revision is no longer kept. */
async function wasCompacted(client: EtcdHttpClient): Promise<boolean> {
  try {
    await query(client, 'kv/range', { key: OWN_KEY_RANGE[0], revision: '1' }, parseHeader);
    return false;
  } catch (error) {
    if (coordinationRefused.is(error) && error.message.includes('compacted')) return true;
    throw error;
  }
}

async function count(client: EtcdHttpClient, key: string, end: string): Promise<number> {
  const body = { key, range_end: end, count_only: true };
  return (await query(client, 'kv/range', body, (answer) => parseRange(parseHeader(answer).fields))).count;
}

function query<T>(
  client: EtcdHttpClient,
  path: string,
  body: object,
  parse: (answer: unknown) => T,
): Promise<T> {
  return client.post({ description: 'a health check of etcd', path, body, isIdempotent: true, parse });
}
