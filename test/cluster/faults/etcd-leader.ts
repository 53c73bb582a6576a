import type { Fault } from './fault.js';

export const etcdLeader: Fault = {
  name: 'etcd-leader',
  what: 'the leader of three etcd servers is killed, and restarted later',
  etcdServers: 3,
  async begin({ etcd, settings }) {
    const leader = await etcd.leader();
    settings.history.note(`etcd server ${leader} is killed`);
    await etcd.kill(leader);
    return () => etcd.allUp();
  },
};
