import { setTimeout as sleep } from 'node:timers/promises';
import type { TestCluster, TestNode } from '../cluster.js';
import type { EtcdCall, EtcdProxy } from '../network/etcd-proxy.js';
import type { Random } from '../random.js';
import type { Fault } from './fault.js';

/** Fractions of lost answers: of commits of derivations and of scenes, of other writes, and of everything else, such as lease renewals. */
const DERIVATIONS = 0.9;
const SCENES = 0.3;
const WRITES = 0.05;
const OTHERS = 0.01;
/** Lengths of the outage after the first lost answer of a commit, ms; a commit is retried for 30 s. */
const OUTAGES = [0, 0, 2000, 34_000, 65_000];

/** Additional time of each disk operation of a node, ms: a derivation that takes longer than 5 s commits in several steps. */
const SLOW = { least: 20, most: 100 };

/** Maximum time until the answer of a commit is lost, ms. */
const FIRST_LIMIT = 45_000;

export const etcdAnswers: Fault = {
  name: 'etcd-answers',
  what: 'etcd does what a node asks, but its answer is lost; etcd is then away for up to a minute',
  proxiesEtcd: true,
  async begin(cluster, target, random) {
    const nodes = random.chance(0.5) ? [...cluster.nodes] : [target];
    const outage = new Outage(cluster, random.pick(OUTAGES), random.chance(0.5) ? isDerivation : isCommit);
    const delay = random.between(SLOW.least, SLOW.most);
    for (const node of nodes) {
      node.server.disturb({ disk: { under: node.data, delay } });
      for (const proxy of proxiesOf(cluster, node)) {
        const own = random.fork(proxy.url);
        proxy.lose = (call) => isLost(call, own) && outage.begins(node, call);
      }
    }
    return async () => {
      await Promise.race([outage.first, sleep(FIRST_LIMIT, undefined, { ref: false })]);
      for (const { server } of nodes) server.disturb({});
      for (const proxy of cluster.proxies.values()) for (const one of proxy) one.lose = undefined;
      await outage.over;
    };
  },
};

const proxiesOf = (cluster: TestCluster, { place }: TestNode): EtcdProxy[] =>
  cluster.proxies.get(place.name) ?? [];

const isCommit = ({ puts }: EtcdCall) => puts.some((key) => key.endsWith('/log/head'));

/** A derivation commits repeatedly under one lock. */
const isDerivation = ({ puts }: EtcdCall) => puts.some((key) => key.includes('/shared/'));

function isLost(call: EtcdCall, random: Random): boolean {
  if (call.path.endsWith('/watch')) return false;
  if (isCommit(call)) return random.chance(isDerivation(call) ? DERIVATIONS : SCENES);
  return random.chance(call.puts.length > 0 ? WRITES : OTHERS);
}

/** At the first lost answer of a commit that `starts` it, etcd becomes unreachable for the node that asked. */
class Outage {
  over: Promise<void> | undefined;
  /** True once the answer of such a commit was lost. */
  readonly first: Promise<void>;
  private seen = () => {};

  constructor(
    private readonly cluster: TestCluster,
    private readonly length: number,
    private readonly starts: (call: EtcdCall) => boolean,
  ) {
    this.first = new Promise((resolve) => {
      this.seen = resolve;
    });
  }

  /** Always true: the answer is lost. */
  begins(node: TestNode, call: EtcdCall): true {
    const { history } = this.cluster.settings;
    if (isCommit(call)) history.note(`the answer of etcd to a commit of ${node.name} is lost: ${call.puts}`);
    if (!isCommit(call) || !this.starts(call)) return true;
    this.seen();
    if (this.over || this.length === 0) return true;
    history.note(`etcd is away for ${node.name} for ${this.length} ms`);
    const proxies = proxiesOf(this.cluster, node);
    for (const proxy of proxies) proxy.setAway(true);
    this.over = sleep(this.length).then(() => {
      for (const proxy of proxies) proxy.setAway(false);
      history.note(`etcd is back for ${node.name}`);
    });
    return true;
  }
}
