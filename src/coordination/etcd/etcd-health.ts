import { coordinationRefused } from '../errors.js';
import type { EtcdClient } from './etcd-http-client.js';
import { rangeOf, withRevision } from './etcd-responses.js';

export interface EtcdLimits {
  /** Quota of its database, bytes: etcd 3.4 does not tell it. */
  quota?: number;
  /** Revisions after which a history that was never compacted is warned of. */
  history?: number;
}

/** etcd's own default. */
const QUOTA = 2 * 1024 ** 3;
const HISTORY = 10_000;
const NEARLY_FULL = 0.6;
const ALL = Buffer.from([0]).toString('base64');
/** `/tilewright/` and the key after all that begin with it. */
const OURS = ['/tilewright/', '/tilewright0'].map((key) => Buffer.from(key).toString('base64'));

/** What the operator of etcd should know at start, one sentence each: a full database, history that piles up, keys of others. */
export async function etcdWarnings(
  client: EtcdClient,
  { quota = QUOTA, history = HISTORY }: EtcdLimits = {},
): Promise<string[]> {
  const warnings: string[] = [];
  const { revision, fields } = await ask(client, 'maintenance/status', {}, withRevision);
  const share = Number(fields.dbSize) / quota;
  if (share >= NEARLY_FULL)
    warnings.push(
      `the database of etcd is at ${Math.round(share * 100)} % of its quota; compact and defragment it, or raise the quota`,
    );

  if (revision > history && !(await wasCompacted(client)))
    warnings.push(
      `etcd keeps the whole history of ${revision} revisions; start it with --auto-compaction-retention=1h`,
    );

  const all = await count(client, ALL, ALL);
  const others = all - (await count(client, OURS[0]!, OURS[1]!));
  if (others > 0)
    warnings.push(`etcd holds ${others} keys of other programs, which share its quota with tilewright`);
  return warnings;
}

/** Whether the first revision is no longer kept. */
async function wasCompacted(client: EtcdClient): Promise<boolean> {
  try {
    await ask(client, 'kv/range', { key: OURS[0], revision: '1' }, withRevision);
    return false;
  } catch (error) {
    if (coordinationRefused.is(error) && error.message.includes('compacted')) return true;
    throw error;
  }
}

async function count(client: EtcdClient, key: string, end: string): Promise<number> {
  const body = { key, range_end: end, count_only: true };
  return (await ask(client, 'kv/range', body, (answer) => rangeOf(withRevision(answer).fields))).count;
}

function ask<T>(client: EtcdClient, path: string, body: object, read: (answer: unknown) => T): Promise<T> {
  return client.post({ what: 'a look at etcd', path, body, repeatable: true, read });
}
