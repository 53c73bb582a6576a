/**
 * Starts a real S3 server for tests: the Versity S3 gateway, whose buckets are folders, on a free port. `tools/install-s3-server.sh`
 * installs it; without it, tests that need the server are skipped.
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

/** False if the server is installed; otherwise the reason to skip a test. */
export const s3SkipReason = existsSync(PROGRAM)
  ? false
  : 'the S3 server is not installed: run tools/install-s3-server.sh';

export const BUCKET = 'tiles';
/** Credentials of the server, as the AWS SDK reads them. */
export const CREDENTIALS = { AWS_ACCESS_KEY_ID: 'tester', AWS_SECRET_ACCESS_KEY: 'tester-secret' };

/** A server that stores its data in a temporary folder. It can be killed and restarted. */
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

/** Sets environment variables until the test ends; undefined removes a variable. */
export function setEnvironment(
  t: Pick<TestContext, 'after'>,
  values: Record<string, string | undefined>,
): void {
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
