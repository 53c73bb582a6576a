/** A cluster of real processes: nodes, etcd, and a folder as tile store that each node sees through its own mount. */
import { execFile } from 'node:child_process';
import { mkdir, readFile, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { mapConcurrent } from '../../src/async/index.js';
import { EtcdCluster } from '../support/etcd.js';
import type { Cleanups } from './cleanups.js';
import { askJson, TOKEN, until } from './client.js';
import type { History } from './history.js';
import { EtcdProxy } from './network/etcd-proxy.js';
import type { Network, Place } from './network/network.js';
import { Server } from './server.js';

export interface TestNode {
  /** A node whose disk was emptied is a new node. */
  name: string;
  url: string;
  data: string;
  /** The store as this node sees it: a link that can be removed. */
  mount: string;
  server: Server;
  place: Place;
}

export interface ClusterSettings {
  folder: string;
  /** Folder with the scenes. */
  scenes: string;
  network: Network;
  history: History;
  nodes: number;
  etcdServers: number;
  /** See `Fault`. */
  proxiesEtcd: boolean;
  agesEtcd: boolean;
  diskMegabytes: number | undefined;
  /** Size of the cache of tile files, as for `--cache`; default: the entire disk. */
  cache?: string;
}

const run = promisify(execFile);

/** Number of earlier changes in etcd, and number of concurrent ones. */
const FORMER_CHANGES = 3000;
const LANES = 50;

/** Raises the revision of etcd by changes of a foreign key. */
async function age(etcd: EtcdCluster): Promise<void> {
  const key = Buffer.from('/somebody-else').toString('base64');
  const changes = Array.from({ length: FORMER_CHANGES }, (_, n) => n);
  await mapConcurrent(changes, LANES, (n) =>
    etcd.ask(0, 'kv/put', { key, value: Buffer.from(`${n}`).toString('base64') }),
  );
}

/** Time limit for moving slots. */
export const MOVE_LIMIT = 90_000;

const NAME = 'test';
const SECRET = 'what all nodes know';

export class TestCluster {
  /** The nodes that should run at the end. */
  readonly nodes: TestNode[] = [];
  /** Slowness compared with an idle machine, at least 1. All time limits are multiplied by it. */
  slowness = 1;
  /** True if no node joins, leaves, or is disturbed. */
  isSteady = false;
  /** Proxies between a node and etcd, by the name of the node's position. */
  readonly proxies = new Map<string, EtcdProxy[]>();
  private made = 0;
  private turn: Promise<unknown> = Promise.resolve();

  private constructor(
    readonly settings: ClusterSettings,
    readonly etcd: EtcdCluster,
    private readonly cleanups: Cleanups,
  ) {}

  static async start(settings: ClusterSettings, cleanups: Cleanups): Promise<TestCluster> {
    const { folder, network, nodes, etcdServers } = settings;
    await mkdir(join(folder, 'store'), { recursive: true });
    const etcd = await EtcdCluster.start(cleanups, etcdServers, [], network.etcdHost);
    if (settings.agesEtcd) await age(etcd);
    const cluster = new TestCluster(settings, etcd, cleanups);
    for (let i = 0; i < nodes; i++) await cluster.addNode();
    return cluster;
  }

  get store(): string {
    return join(this.settings.folder, 'store');
  }

  get etcdName(): string {
    return NAME;
  }

  /** Starts another node, with an empty disk. */
  async addNode(): Promise<TestNode> {
    const { network } = this.settings;
    const name = `n${++this.made}`;
    const place = await network.addNode(name, await this.etcdFor(name));
    return this.launch(name, place);
  }

  /** Addresses of etcd for a node: its own proxies, if there are any. */
  private async etcdFor(name: string): Promise<string[]> {
    const { proxiesEtcd, network } = this.settings;
    const { urls } = this.etcd;
    if (!proxiesEtcd) return urls;
    const proxies = await Promise.all(urls.map((url) => EtcdProxy.start(url, network.etcdHost)));
    this.proxies.set(name, proxies);
    this.cleanups.after(() => {
      for (const proxy of proxies) proxy.close();
    });
    return proxies.map(({ url }) => url);
  }

  /** Runs work that changes the store or etcd outside of the nodes, one piece after another. */
  alone<T>(work: () => Promise<T>): Promise<T> {
    const done = this.turn.then(work);
    // The caller handles the error; later work only waits for the end.
    this.turn = done.catch(() => undefined);
    return done;
  }

  /** Restarts the stopped machine of a node with an empty disk, which makes it a new node. */
  async startEmpty(node: TestNode): Promise<TestNode> {
    this.forget(node);
    await this.unmount(node.data);
    await rm(node.data, { recursive: true });
    return this.launch(`${node.name}'`, node.place);
  }

  /** Removes a node that will not return. */
  forget(node: TestNode): void {
    this.nodes.splice(this.nodes.indexOf(node), 1);
  }

  private async launch(name: string, place: Place): Promise<TestNode> {
    const { folder, history, scenes } = this.settings;
    const { host, port, advertised, wrapper, env, etcd } = place;
    const data = join(folder, 'data', name);
    const mount = join(folder, `mount-${name}`);
    await mkdir(data, { recursive: true });
    await this.mount(data);
    await symlink(this.store, mount);
    const where = [
      '--data',
      data,
      '--host',
      host,
      '--port',
      `${port}`,
      '--advertise',
      advertised,
      '--zone',
      name,
    ];
    const shared = [
      '--etcd',
      etcd.join(),
      '--store',
      pathToFileURL(mount).href,
      '--cluster-name',
      NAME,
      '--secret',
      SECRET,
    ];
    const access = ['--token', TOKEN, '--rate-limit', '0', '--allow-folder', scenes];
    const { cache } = this.settings;
    const limits = ['--reserve', '0', '--cores', '1', '--memory', '200MB'];
    if (cache !== undefined) limits.push('--cache', cache);
    const server = new Server({
      args: ['serve', ...where, ...shared, ...access, ...limits],
      env,
      wrapper,
      log: join(folder, `${name}.log`),
    });
    this.cleanups.after(() => server.stop('SIGKILL'));
    const node: TestNode = { name, url: `http://${host}:${port}`, data, mount, server, place };
    this.nodes.push(node);
    server.start();
    history.note(`${name} is started`);
    return node;
  }

  /** Gives a data folder its own small disk if the fault needs it. */
  private async mount(data: string): Promise<void> {
    const { diskMegabytes } = this.settings;
    if (diskMegabytes === undefined) return;
    await run('mount', ['-t', 'tmpfs', '-o', `size=${diskMegabytes}m`, 'tmpfs', data]);
    this.cleanups.after(() => this.unmount(data));
  }

  private async unmount(data: string): Promise<void> {
    if (this.settings.diskMegabytes === undefined) return;
    // At a second call, nothing is mounted any more.
    await run('umount', ['-l', data]).catch(() => undefined);
  }

  /** The id of a node, which it writes to its folder when it starts. */
  async idOf({ name, data }: TestNode): Promise<string> {
    let id: string | undefined;
    await until(`${name} has an id`, MOVE_LIMIT * this.slowness, async () => {
      id = (JSON.parse(await readFile(join(data, 'node.json'), 'utf8')) as { id: string }).id;
      return true;
    });
    return id!;
  }

  /** Drains a node and stops it for good. */
  async drain(node: TestNode): Promise<void> {
    const { history } = this.settings;
    const limit = MOVE_LIMIT * this.slowness;
    const id = await this.idOf(node);
    const other = () => this.nodes.filter((one) => one !== node && one.server.isRunning);
    history.note(`${node.name} drains`);
    await until(`a node lets ${node.name} drain`, limit, async () => {
      for (const { url } of other()) {
        await askJson(url, `/cluster/nodes/${id}/drain`, { method: 'POST' });
        return true;
      }
      return false;
    });
    await until(`${node.name} has no slots`, limit, async () => {
      const [asked] = other();
      const { nodes } = await askJson<{ nodes: { id: string; slots: number }[] }>(
        asked!.url,
        '/cluster/nodes',
      );
      return (nodes.find((one) => one.id === id)?.slots ?? 0) === 0;
    });
    history.note(`${node.name} has no slots and is stopped`);
    this.forget(node);
    await node.server.stop('SIGTERM');
  }
}
