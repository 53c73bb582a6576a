import { ETCD } from '../network/network.js';
import type { Fault } from './fault.js';

export const partition: Fault = {
  name: 'partition',
  what: 'a node is cut off from etcd, from the other nodes, or from both; clients still reach it',
  async begin(cluster, target, random) {
    const { network, history } = cluster.settings;
    const from = random.pick(['etcd', 'nodes', 'both']);
    history.note(`${target.name} is cut off from ${from}`);
    if (from !== 'nodes') await network.cut(target.place.name, ETCD);
    if (from !== 'etcd')
      for (const { place } of cluster.nodes)
        if (place !== target.place) await network.cut(target.place.name, place.name);
    return () => network.heal();
  },
};
