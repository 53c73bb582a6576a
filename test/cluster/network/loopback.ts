/** A network for machines without network privileges: everything on loopback, with proxies in front of nodes and of etcd. */

import { freePort } from '../../support/s3.js';
import { SOURCE } from '../fault-injection.js';
import { ETCD, type Network, type Place } from './network.js';
import { TcpProxy } from './tcp-proxy.js';

export class LoopbackNetwork implements Network {
  readonly kind = 'loopback';
  readonly etcdHost = '127.0.0.1';
  private readonly names = new Map<string, string>();
  private readonly cuts = new Set<string>();
  private readonly proxies: TcpProxy[] = [];
  /** Proxies in front of etcd, by the address that they hide. */
  private readonly etcd = new Map<string, Promise<string>>();

  async addNode(name: string, etcd: string[]): Promise<Place> {
    const source = `127.0.1.${this.names.size + 1}`;
    this.names.set(source, name);
    for (const url of etcd) if (!this.etcd.has(url)) this.etcd.set(url, this.front(new URL(url), ETCD));
    const fronts = await Promise.all(etcd.map((url) => this.etcd.get(url)!));
    const port = await freePort();
    const advertised = await this.front({ hostname: '127.0.0.1', port: `${port}` }, name);
    return {
      name,
      host: '127.0.0.1',
      port,
      advertised,
      etcd: fronts,
      wrapper: [],
      env: { [SOURCE]: source },
    };
  }

  async cut(a: string, b: string): Promise<void> {
    this.cuts.add(`${a} ${b}`).add(`${b} ${a}`);
    this.update();
  }

  async heal(): Promise<void> {
    this.cuts.clear();
    this.update();
  }

  async close(): Promise<void> {
    for (const proxy of this.proxies) proxy.close();
  }

  private update(): void {
    for (const proxy of this.proxies) proxy.update();
  }

  private async front({ hostname, port }: { hostname: string; port: string }, name: string): Promise<string> {
    const proxy = await TcpProxy.start({ host: hostname, port: Number(port) }, (source) =>
      this.cuts.has(`${this.names.get(source)} ${name}`),
    );
    this.proxies.push(proxy);
    return `http://127.0.0.1:${proxy.port}`;
  }
}
