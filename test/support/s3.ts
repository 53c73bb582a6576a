/**
 * A real S3 server, the Versity S3 gateway over a folder, on a port of its own. `tools/install-s3-server.sh` installs it;
 * tests that need it are skipped if it is missing.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { atEnd } from './at-end.js';

const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache');
const PROGRAM = join(cache, 'tilewright/bin/versitygw-v1.8.0');

export const noS3Server = existsSync(PROGRAM)
  ? false
  : 'there is no S3 server here; tools/install-s3-server.sh installs one';

export const BUCKET = 'tiles';
/** Credentials of the server, as the AWS SDK reads them. */
export const CREDENTIALS = { AWS_ACCESS_KEY_ID: 'tester', AWS_SECRET_ACCESS_KEY: 'tester-secret' };

/** One server over one folder; it may be killed and started again. */
export class S3Server {
  private process: ChildProcess | undefined;

  private constructor(
    private readonly folder: string,
    readonly port: number,
  ) {}

  /** A running server with an empty bucket `tiles`. */
  static async start(t: Pick<TestContext, 'after'>): Promise<S3Server> {
    const folder = await mkdtemp(join(tmpdir(), 'tilewright-s3-'));
    const server = new S3Server(folder, await freePort());
    atEnd(t, async () => {
      await server.kill();
      await rm(folder, { recursive: true, force: true });
    });
    await mkdir(join(folder, 'buckets', BUCKET), { recursive: true });
    await mkdir(join(folder, 'metadata'));
    await server.restart();
    return server;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** The file in which the server keeps an object. */
  fileOf(key: string): string {
    return join(this.folder, 'buckets', BUCKET, key);
  }

  async restart(): Promise<void> {
    const { AWS_ACCESS_KEY_ID: access, AWS_SECRET_ACCESS_KEY: secret } = CREDENTIALS;
    const posix = ['posix', '--sidecar', join(this.folder, 'metadata'), join(this.folder, 'buckets')];
    const options = ['--quiet', '--keep-alive', '--port', `127.0.0.1:${this.port}`];
    this.process = spawn(PROGRAM, [...options, '--access', access, '--secret', secret, ...posix], {
      stdio: 'ignore',
    });
    while (!(await isListening(this.port))) {
      if (this.process.exitCode !== null) throw new Error(`${PROGRAM} has ended`);
      await sleep(20);
    }
  }

  signal(signal: NodeJS.Signals): void {
    this.process?.kill(signal);
  }

  async kill(): Promise<void> {
    const { process } = this;
    if (!process || process.signalCode || process.exitCode !== null) return;
    const ended = new Promise((resolve) => process.once('exit', resolve));
    process.kill('SIGKILL');
    await ended;
  }
}

/** Sets variables of the environment until the test has ended; undefined unsets one. */
export function environment(t: Pick<TestContext, 'after'>, values: Record<string, string | undefined>): void {
  const before = Object.fromEntries(Object.keys(values).map((name) => [name, process.env[name]]));
  atEnd(t, () => assign(before));
  assign(values);
}

function assign(values: Record<string, string | undefined>): void {
  for (const [name, value] of Object.entries(values))
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === 'object' && address ? address.port : 0;
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}
