import { pathToFileURL } from 'node:url';
import { tilewright } from '../../support/command.js';
import type { Fault } from './fault.js';

export const restore: Fault = {
  name: 'restore',
  what: 'etcd has lost everything: all nodes are stopped, it is rebuilt from the store, and they are started again',
  agesEtcd: true,
  async begin(cluster) {
    const { etcd, etcdName, nodes, settings, store } = cluster;
    await cluster.alone(async () => {
      await Promise.all(nodes.map(({ server }) => server.stop('SIGTERM')));
      await etcd.loseAll();
      settings.history.note('etcd has lost everything');
      const where = ['--etcd', etcd.urls.join(), '--store', pathToFileURL(store).href];
      const { code, stdout, stderr } = await tilewright(
        'node',
        'restore',
        ...where,
        '--cluster-name',
        etcdName,
      );
      if (code !== 0) throw new Error(`node restore: exit code ${code}: ${stderr}`);
      settings.history.note(stdout.trim());
      for (const { server } of nodes) server.start();
    });
    return async () => undefined;
  },
};
