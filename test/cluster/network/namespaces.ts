/**
 * A separate network for every node: Linux network namespaces, joined by a bridge with etcd and the clients. A cut sets a wrong
 * hardware address for the other side, so packets are lost as after pulling a cable.
 */
import { execFile, execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import { ETCD, type Network, type Place } from './network.js';

const run = promisify(execFile);
const ip = (...args: string[]) => run('ip', args);
const NOWHERE = '02:00:00:00:00:01';
const PORT = 8080;

/** True if this process may create namespaces. */
export function mayMakeNamespaces(): boolean {
  const name = `tw-${randomBytes(3).toString('hex')}`;
  try {
    execFileSync('ip', ['netns', 'add', name], { stdio: 'ignore' });
    execFileSync('ip', ['netns', 'del', name], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

export class NamespaceNetwork implements Network {
  readonly kind = 'namespaces';
  readonly etcdHost: string;
  /** Names of the interfaces at the bridge, one for each node. */
  readonly cables: string[] = [];
  private readonly addresses = new Map<string, string>();
  private readonly broken: { namespace: string; address: string }[] = [];

  private constructor(
    private readonly tag: string,
    private readonly subnet: string,
  ) {
    this.etcdHost = `${subnet}.2`;
    this.addresses.set(ETCD, this.etcdHost);
  }

  static async open(): Promise<NamespaceNetwork> {
    const bytes = randomBytes(3);
    const network = new NamespaceNetwork(bytes.toString('hex'), `10.${64 + (bytes[0]! & 63)}.${bytes[1]}`);
    process.once('exit', network.remove);
    // Otherwise the bridge adopts the address of a cable, and a new one with each cable; clients of the old address lose half a minute.
    const address = `02:${Buffer.from('tw').toString('hex').match(/../g)!.join(':')}:${network.tag.match(/../g)!.join(':')}`;
    await ip('link', 'add', network.bridge, 'address', address, 'type', 'bridge');
    for (const host of [1, 2]) await ip('addr', 'add', `${network.subnet}.${host}/24`, 'dev', network.bridge);
    await ip('link', 'set', network.bridge, 'up');
    return network;
  }

  async addNode(name: string, etcd: string[]): Promise<Place> {
    const host = `${this.subnet}.${10 + this.addresses.size}`;
    this.addresses.set(name, host);
    const namespace = this.namespaceOf(name);
    const cable = `${this.bridge}${this.addresses.size}`;
    this.cables.push(cable);
    await ip('netns', 'add', namespace);
    await ip('link', 'add', cable, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', namespace);
    await ip('link', 'set', cable, 'master', this.bridge, 'up');
    await ip('-n', namespace, 'addr', 'add', `${host}/24`, 'dev', 'eth0');
    await ip('-n', namespace, 'link', 'set', 'eth0', 'up');
    await ip('-n', namespace, 'link', 'set', 'lo', 'up');
    const wrapper = ['ip', 'netns', 'exec', namespace];
    return { name, host, port: PORT, advertised: `http://${host}:${PORT}`, etcd, wrapper, env: {} };
  }

  async cut(a: string, b: string): Promise<void> {
    await Promise.all([this.lose(a, b), this.lose(b, a)]);
  }

  async heal(): Promise<void> {
    const all = this.broken.splice(0);
    await Promise.all(
      all.map(({ namespace, address }) => ip('-n', namespace, 'neigh', 'del', address, 'dev', 'eth0')),
    );
  }

  async close(): Promise<void> {
    process.off('exit', this.remove);
    this.remove();
  }

  private async lose(from: string, to: string): Promise<void> {
    if (from === ETCD) return;
    const namespace = this.namespaceOf(from);
    const address = this.addresses.get(to)!;
    this.broken.push({ namespace, address });
    await ip(
      '-n',
      namespace,
      'neigh',
      'replace',
      address,
      'lladdr',
      NOWHERE,
      'nud',
      'permanent',
      'dev',
      'eth0',
    );
  }

  private readonly remove = () => {
    const names = [...this.addresses.keys()].filter((name) => name !== ETCD);
    for (const args of [
      ...names.map((name) => ['netns', 'del', this.namespaceOf(name)]),
      ['link', 'del', this.bridge],
    ])
      try {
        execFileSync('ip', args, { stdio: 'ignore' });
      } catch (error) {
        console.error(`ip ${args.join(' ')}: ${String(error)}`);
      }
  };

  get bridge(): string {
    return `tw${this.tag}`;
  }

  private namespaceOf(name: string): string {
    return `tw-${this.tag}-${name}`;
  }
}
