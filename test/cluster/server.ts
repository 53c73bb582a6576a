/** One server process, restarted when it ends by itself, as by a service manager. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { MAIN } from '../support/command.js';
import type { FaultInjection } from './fault-injection.js';

const PRELOAD = new URL('preload.js', import.meta.url).href;
const AGAIN = 1000;

/** All servers, which end with the harness. */
const children = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

export interface ServerOptions {
  args: string[];
  env: Record<string, string>;
  wrapper: string[];
  /** The file for its output. */
  log: string;
}

export class Server {
  private child: ChildProcess | undefined;
  private wanted = false;
  private again: NodeJS.Timeout | undefined;
  private disturbance: FaultInjection = {};
  /** How often it has ended by itself while it served. A refused start, for example without a store, is retried. */
  ends = 0;
  /** The last report of its process (`process.memoryUsage()`), a few seconds old. */
  memory: NodeJS.MemoryUsage | undefined;

  constructor(private readonly options: ServerOptions) {}

  get isRunning(): boolean {
    return this.child !== undefined;
  }

  /** Process id; undefined while it is not running. */
  get pid(): number | undefined {
    return this.child?.pid;
  }

  start(): void {
    this.wanted = true;
    const { args, env, wrapper, log } = this.options;
    const command = [
      ...wrapper,
      process.execPath,
      '--enable-source-maps',
      '--import',
      PRELOAD,
      MAIN,
      ...args,
    ];
    const output = openSync(log, 'a');
    const { size } = fstatSync(output);
    const child = spawn(command[0]!, command.slice(1), {
      stdio: ['ignore', output, output, 'ipc'],
      env: { ...process.env, ...env },
    });
    closeSync(output);
    // Messages to a process that has just ended are ignored.
    child.on('error', () => undefined);
    children.add(child);
    child.on('message', (memory) => {
      this.memory = memory as NodeJS.MemoryUsage;
    });
    child.once('exit', () => {
      children.delete(child);
      if (this.child === child) {
        this.child = undefined;
        this.memory = undefined;
      }
      if (!this.wanted) return;
      if (readFileSync(log).subarray(size).includes('tilewright serves')) this.ends++;
      this.again = setTimeout(() => this.start(), AGAIN);
    });
    this.child = child;
    child.send(this.disturbance, () => undefined);
  }

  /** Ends it for now: SIGKILL at once, or SIGTERM, so that it may close. */
  async stop(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    this.wanted = false;
    clearTimeout(this.again);
    const { child } = this;
    if (!child) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill(signal);
    const late = setTimeout(() => child.kill('SIGKILL'), 30_000);
    await ended;
    clearTimeout(late);
  }

  /** It hangs. */
  pause(): void {
    this.child?.kill('SIGSTOP');
  }

  resume(): void {
    this.child?.kill('SIGCONT');
  }

  disturb(disturbance: FaultInjection): void {
    this.disturbance = disturbance;
    this.child?.send(disturbance, () => undefined);
  }
}
