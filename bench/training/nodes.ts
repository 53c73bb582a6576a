/** The cluster that trains: three nodes of one core, each in its own network namespace, and etcd. */
import { NamespaceNetwork } from '../../test/cluster/network/namespaces.js';
import type { Place as Spot } from '../../test/cluster/network/network.js';
import { type Server, settled, startEtcd, startNode, stop } from '../cluster/servers.js';
import { withFolder } from './folder.js';

const NAMES = ['node-a', 'node-b', 'node-c'];
const OWNERS = 2;

export interface TrainingNode extends Server {
  /** Its address and how a program is run beside it. */
  spot: Spot;
}

export interface TrainingCluster {
  nodes: TrainingNode[];
  network: NamespaceNetwork;
  folder: string;
}

/** The cluster is removed afterwards, even if this process is interrupted. */
export async function withCluster<T>(work: (cluster: TrainingCluster) => Promise<T>): Promise<T> {
  const nodes: TrainingNode[] = [];
  // This must happen before their folder is removed.
  const kill = () => {
    for (const { child } of nodes) child.kill('SIGKILL');
  };
  process.once('exit', kill);
  try {
    return await withFolder('tilewright-training-', async (folder) => {
      const network = await NamespaceNetwork.open();
      try {
        const etcd = await startEtcd(folder, 1, network.etcdHost);
        try {
          for (const name of NAMES) {
            const spot = await network.addNode(name, etcd.urls);
            nodes.push({ ...(await startNode({ folder, etcd }, name, 1, spot)), spot });
          }
          await settled(nodes, OWNERS);
          return await work({ nodes, network, folder });
        } finally {
          await Promise.all(nodes.map(({ child }) => stop(child)));
          await etcd.stop();
        }
      } finally {
        await network.close();
      }
    });
  } finally {
    process.off('exit', kill);
  }
}
