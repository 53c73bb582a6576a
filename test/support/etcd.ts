/** Real etcd servers on free ports of this machine. Tests that need them are skipped if etcd is not installed. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { atEnd } from './at-end.js';

const isInstalled = (() => {
  try {
    execFileSync('etcd', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
})();

/** For `skip`: false, or the reason. */
export const noEtcd = isInstalled ? false : 'etcd is not on PATH';

interface Status {
  leader?: string;
  header: { member_id: string };
}

export class EtcdCluster {
  readonly urls: string[];
  private readonly processes: ChildProcess[] = [];

  private constructor(
    private readonly folder: string,
    private readonly ports: number[],
    private readonly options: string[],
    private readonly host: string,
  ) {
    this.urls = this.members.map((member) => this.url(member, 0));
  }

  /** Servers of one cluster, ready to write; they end with the test. `options` are etcd's; `host` is an address of this machine. */
  static async start(
    t: { after(work: () => Promise<void>): void },
    size = 1,
    options: string[] = [],
    host = '127.0.0.1',
  ): Promise<EtcdCluster> {
    const folder = await mkdtemp(join(tmpdir(), 'tilewright-etcd-'));
    const cluster = new EtcdCluster(folder, await freePorts(2 * size), options, host);
    const killAll = () => {
      for (const server of cluster.processes) server.kill('SIGKILL');
    };
    process.once('exit', killAll);
    atEnd(t, async () => {
      process.off('exit', killAll);
      killAll();
      await Promise.all(cluster.processes.map(ended));
      await rm(folder, { recursive: true });
    });
    await cluster.allUp();
    return cluster;
  }

  get members(): number[] {
    return this.ports.slice(this.ports.length / 2).map((_, member) => member);
  }

  /** Starts a server, even if it was killed before. */
  launch(member: number): void {
    const peers = this.members.map((other) => `m${other}=${this.url(other, 1)}`);
    this.processes[member] = spawn(
      'etcd',
      [
        ...['--name', `m${member}`, '--data-dir', join(this.folder, `${member}`)],
        ...['--listen-client-urls', this.url(member, 0), '--advertise-client-urls', this.url(member, 0)],
        ...['--listen-peer-urls', this.url(member, 1), '--initial-advertise-peer-urls', this.url(member, 1)],
        ...['--initial-cluster', peers.join(), '--initial-cluster-state', 'new', '--log-level', 'fatal'],
        ...this.options,
      ],
      { stdio: 'ignore' },
    );
  }

  /** Waits until the process has ended: while it waits for the disk, it still runs and answers. */
  async kill(member: number): Promise<void> {
    const server = this.processes[member];
    server?.kill('SIGKILL');
    await ended(server);
  }

  /** Stops the process, so that it does not answer but its connections stay open. Waits until all its threads are stopped. */
  async pause(member: number): Promise<void> {
    const server = this.processes[member];
    server?.kill('SIGSTOP');
    while (!hasEnded(server) && !(await isStopped(server!.pid!))) await sleep(5);
  }

  resume(member: number): void {
    this.processes[member]?.kill('SIGCONT');
  }

  /** Waits for a leader and returns its number. */
  async leader(): Promise<number> {
    for (;;) {
      for (const member of this.members) {
        const status = await this.ask<Status>(member, 'maintenance/status', {});
        if (status?.leader && status.leader === status.header.member_id) return member;
      }
      await sleep(50);
    }
  }

  /** Starts or resumes those servers that do not run, and waits until all answer linearizable reads. */
  async allUp(): Promise<void> {
    for (const member of this.members) {
      this.resume(member);
      if (hasEnded(this.processes[member])) this.launch(member);
    }
    for (const member of this.members)
      while (!(await this.ask(member, 'kv/range', { key: Buffer.from('ready').toString('base64') })))
        await sleep(50);
  }

  /** Restarts all servers without data at the same addresses. */
  async loseAll(): Promise<void> {
    await Promise.all(this.members.map((member) => this.kill(member)));
    for (const member of this.members)
      await rm(join(this.folder, `${member}`), { recursive: true, force: true });
    await this.allUp();
  }

  /** One call of a server's JSON gateway; undefined without a successful answer within a second. */
  async ask<T>(member: number, path: string, body: object): Promise<T | undefined> {
    try {
      const response = await fetch(`${this.url(member, 0)}/v3/${path}`, {
        method: 'POST',
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(1000),
      });
      return response.ok ? ((await response.json()) as T) : undefined;
    } catch {
      return undefined;
    }
  }

  private url(member: number, kind: 0 | 1): string {
    return `http://${this.host}:${this.ports[2 * member + kind]}`;
  }
}

const hasEnded = (process: ChildProcess | undefined) =>
  process === undefined || process.exitCode !== null || process.signalCode !== null;

async function ended(process: ChildProcess | undefined): Promise<void> {
  if (!hasEnded(process)) await new Promise((resolve) => process!.once('exit', resolve));
}

/** True if all threads of a process are stopped (proc(5), `status`). A thread whose status is not readable counts as stopped. */
async function isStopped(pid: number): Promise<boolean> {
  const threads = await readdir(`/proc/${pid}/task`).catch(() => []);
  const states = await Promise.all(
    threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/status`, 'utf8').catch(() => 'State:\tX')),
  );
  return states.every((status) => /^State:\t[TX]/m.test(status));
}

async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer();
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      return server;
    }),
  );
  const ports = servers.map((server) => (server.address() as { port: number }).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
