/** Forwards TCP connections, and delays those that are cut. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

interface Link {
  source: string;
  near: Socket;
  far: Socket | undefined;
}

/** Invariant: the bytes of a cut link are held; none is lost or forwarded. They are forwarded when the cut ends. */
export class TcpProxy {
  private readonly links = new Set<Link>();
  private readonly server: Server;

  private constructor(
    private readonly target: { host: string; port: number },
    /** True if bytes from an address are held now. */
    private readonly isCut: (source: string) => boolean,
  ) {
    this.server = createServer({ pauseOnConnect: true }, (near) => this.accept(near));
  }

  static async start(
    target: { host: string; port: number },
    isCut: (source: string) => boolean,
  ): Promise<TcpProxy> {
    const proxy = new TcpProxy(target, isCut);
    proxy.server.listen(0, '127.0.0.1');
    await once(proxy.server, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /** Called after the cuts have changed. */
  update(): void {
    for (const link of this.links) this.pass(link);
  }

  close(): void {
    this.server.close();
    for (const { near, far } of this.links) {
      near.destroy();
      far?.destroy();
    }
  }

  private accept(near: Socket): void {
    const link: Link = { source: near.remoteAddress ?? '', near, far: undefined };
    this.links.add(link);
    near.on('error', () => near.destroy()).on('close', () => this.end(link));
    this.pass(link);
  }

  private pass(link: Link): void {
    const { near } = link;
    if (this.isCut(link.source)) {
      near.pause();
      link.far?.pause();
      return;
    }
    link.far ??= this.reach(link);
    near.resume();
    link.far.resume();
    if (near.destroyed || link.far.destroyed) this.end(link);
  }

  private reach(link: Link): Socket {
    const { near } = link;
    const far = connect(this.target);
    far.setNoDelay(true);
    near.setNoDelay(true);
    near.on('data', (chunk) => far.write(chunk)).on('end', () => far.end());
    far.on('data', (chunk) => near.write(chunk)).on('end', () => near.end());
    far.on('error', () => far.destroy()).on('close', () => this.end(link));
    return far;
  }

  /** The other side sees the end only if it is not cut off. */
  private end(link: Link): void {
    if (this.isCut(link.source)) return;
    link.near.destroy();
    link.far?.destroy();
    this.links.delete(link);
  }
}
