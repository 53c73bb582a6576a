import { randomUUID } from 'node:crypto';
import { after } from 'node:test';
import { EtcdStore } from '../../src/coordination/index.js';
import { atEnd } from '../support/at-end.js';
import { EtcdCluster, noEtcd } from '../support/etcd.js';
import { kvStoreContract } from './kv-store-contract.js';

// One server for all tests; each test has its own cluster name and thus its own keys.
/** On a machine that runs other tests as well, etcd may take longer than a second. */
const BUSY_TIMEOUT_MS = 20_000;

const server = noEtcd ? undefined : await EtcdCluster.start({ after });

kvStoreContract(
  'etcd: the coordination store of a cluster',
  async (t) => {
    const cluster = randomUUID();
    return () => {
      const store = new EtcdStore(server!.urls, cluster, BUSY_TIMEOUT_MS);
      atEnd(t, () => store.close());
      return store;
    };
  },
  { skip: noEtcd, runs: 20 },
);
