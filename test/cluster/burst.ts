/** Many searches at the same moment. */
import { askJson, COLLECTION, RequestFailed } from './client.js';
import type { TestCluster, TestNode } from './cluster.js';
import type { Burst } from './history.js';

const SEARCHES = 500;
/** Time limit of each search; waiting in a queue is not a failure. */
const TIMEOUT_MS = 60_000;

/** Sends the searches to one node, and records how many were answered completely. */
export async function burst(
  { settings, slowness }: TestCluster,
  { name, url }: TestNode,
  isHealthy: boolean,
): Promise<void> {
  const { history } = settings;
  const sent: Burst = {
    kind: 'burst',
    node: name,
    invoked: history.now(),
    ended: 0,
    isHealthy,
    searches: SEARCHES,
    partial: 0,
    failed: 0,
  };
  const body = { collections: [COLLECTION], limit: 1 };
  const search = async () => {
    try {
      const { partial } = await askJson<{ partial?: boolean }>(url, '/search', {
        method: 'POST',
        body,
        timeoutMs: Math.ceil(TIMEOUT_MS * slowness),
      });
      if (partial) sent.partial++;
    } catch (error) {
      if (!(error instanceof RequestFailed)) throw error;
      sent.failed++;
      sent.why = error.message;
    }
  };
  await Promise.all(Array.from({ length: SEARCHES }, search));
  history.add({ ...sent, ended: history.now() });
}
