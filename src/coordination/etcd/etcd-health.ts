import { coordinationRefused } from '../errors.js';
import type { EtcdHttpClient } from './etcd-http-client.js';
import { parseHeader, parseRange } from './etcd-responses.js';

export interface EtcdLimits {
  /** Quota of its database, bytes: etcd 3.4 does not tell it. */
  quotaBytes?: number;
  /** Revisions after which a history that was never compacted is warned of. */
  maxRevisions?: number;
}

/** etcd's own default. */
const DEFAULT_QUOTA_BYTES = 2 * 1024 ** 3;
const MAX_HISTORY_REVISIONS = 10_000;
const QUOTA_WARNING_RATIO = 0.6;
const ALL_KEYS = Buffer.from([0]).toString('base64');
/** `/tilewright/` and the key after all that begin with it. */
const OWN_KEY_RANGE = ['/tilewright/', '/tilewright0'].map((key) => Buffer.from(key).toString('base64'));

/** What the operator of etcd should know at start, one sentence each: a full database, history that piles up, keys of others. */
export async function etcdHealthWarnings(
  client: EtcdHttpClient,
  { quotaBytes = DEFAULT_QUOTA_BYTES, maxRevisions = MAX_HISTORY_REVISIONS }: EtcdLimits = {},
): Promise<string[]> {
  const warnings: string[] = [];
  const { revision, fields } = await ask(client, 'maintenance/status', {}, parseHeader);
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

/** Whether the first revision is no longer kept. */
async function wasCompacted(client: EtcdHttpClient): Promise<boolean> {
  try {
    await ask(client, 'kv/range', { key: OWN_KEY_RANGE[0], revision: '1' }, parseHeader);
    return false;
  } catch (error) {
    if (coordinationRefused.is(error) && error.message.includes('compacted')) return true;
    throw error;
  }
}

async function count(client: EtcdHttpClient, key: string, end: string): Promise<number> {
  const body = { key, range_end: end, count_only: true };
  return (await ask(client, 'kv/range', body, (answer) => parseRange(parseHeader(answer).fields))).count;
}

function ask<T>(
  client: EtcdHttpClient,
  path: string,
  body: object,
  parse: (answer: unknown) => T,
): Promise<T> {
  return client.post({ description: 'a look at etcd', path, body, isIdempotent: true, parse });
}
