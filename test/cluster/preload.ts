/**
 * Loaded into the server process before its own code (`node --import`): disturbs the clock and the disk as the harness requests over the
 * channel of the process, and reports the memory of the process. The server is not involved. LevelDB is not affected, because it makes
 * its own system calls.
 */
import fs from 'node:fs';
import fsPromises, { type FileHandle } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import net from 'node:net';
import { isMainThread } from 'node:worker_threads';
import { type FaultInjection, SOURCE } from './fault-injection.js';
import { Random } from './random.js';

/** Interval between two reports of the memory, ms. */
const REPORT = 5000;

let disturbance: FaultInjection = {};
/** Chooses the lost answers. */
let random = new Random(0);
/** Until this time of `performance.now()`, a store whose answer was lost is unreachable. */
let awayUntil = 0;
/** Functions that end the waits of a disk that hangs. */
let wake: (() => void) | undefined;
let changed = new Promise<void>((resolve) => {
  wake = resolve;
});

// Child processes of the server inherit this module, but have channels of their own.
if (isMainThread && process.argv.includes('serve')) {
  process.on('message', (message) => {
    disturbance = message as FaultInjection;
    random = new Random(disturbance.answers?.seed ?? 0);
    awayUntil = 0;
    wake?.();
    changed = new Promise((resolve) => {
      wake = resolve;
    });
  });
  setInterval(() => process.send?.(process.memoryUsage(), () => undefined), REPORT).unref();
  // The channel must not keep the server alive.
  process.channel?.unref();
  disturbClock();
  await disturbDisk();
  nameSource(process.env[SOURCE]);
}

function disturbClock(): void {
  const RealDate = Date;
  const now = () => RealDate.now() + (disturbance.clock ?? 0);
  globalThis.Date = new Proxy(RealDate, {
    construct: (target, args, self) =>
      Reflect.construct(target, args.length > 0 ? args : [now()], self) as object,
    apply: () => new RealDate(now()).toString(),
    get: (target, key, self) => (key === 'now' ? now : (Reflect.get(target, key, self) as unknown)),
  });
}

/** Factor by which answers are lost more often if the path contains `more`. */
const MORE = 8;

const failed = (path: string) => Object.assign(new Error(`EIO: i/o error, '${path}'`), { code: 'EIO' });

/** Throws if the answer of a completed change must be lost. */
function answer(paths: unknown[]): void {
  const { answers } = disturbance;
  const path = paths.findLast((one) => typeof one === 'string');
  if (!answers || typeof path !== 'string' || !path.startsWith(answers.under)) return;
  if (!random.chance(answers.share * (path.includes(answers.more) ? MORE : 1))) return;
  awayUntil = performance.now() + answers.outage;
  throw failed(path);
}

/** Waits like the disk below a path; throws while it is unreachable. */
async function wait(path: unknown): Promise<void> {
  const { answers } = disturbance;
  const isAway = performance.now() < awayUntil;
  if (answers && isAway && typeof path === 'string' && path.startsWith(answers.under)) throw failed(path);
  for (;;) {
    const { disk } = disturbance;
    if (!disk || typeof path !== 'string' || !path.startsWith(disk.under)) return;
    if (!disk.hangs) return new Promise((resolve) => setTimeout(resolve, disk.delay));
    await changed;
  }
}

/** Functions that change the disk. */
const CHANGES = new Set([
  'link',
  'mkdir',
  'rename',
  'rm',
  'rmdir',
  'unlink',
  'writeFile',
  'sync',
  'datasync',
]);

async function disturbDisk(): Promise<void> {
  const names = [
    'access',
    'link',
    'mkdir',
    'readdir',
    'readFile',
    'rename',
    'rm',
    'rmdir',
    'stat',
    'unlink',
    'writeFile',
  ] as const;
  const all = fsPromises as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>;
  for (const name of names) {
    const real = all[name]!;
    all[name] = async (...args) => {
      await wait(args[0]);
      const result = await real.apply(fsPromises, args);
      if (CHANGES.has(name)) answer(args);
      return result;
    };
  }
  const paths = new WeakMap<FileHandle, unknown>();
  const realOpen = fsPromises.open;
  fsPromises.open = async (...args) => {
    await wait(args[0]);
    const handle = await realOpen(...args);
    paths.set(handle, args[0]);
    return handle;
  };
  const probe = await realOpen(new URL(import.meta.url));
  const handles = Object.getPrototypeOf(probe) as Record<string, (...args: unknown[]) => Promise<unknown>>;
  await probe.close();
  for (const name of ['read', 'write', 'writeFile', 'sync', 'datasync']) {
    const real = handles[name]!;
    handles[name] = async function (this: FileHandle, ...args) {
      await wait(paths.get(this));
      const result = await real.apply(this, args);
      if (CHANGES.has(name)) answer([paths.get(this)]);
      return result;
    };
  }
  // Streams open their files with this function.
  const callbacks = fs as unknown as { open: (...args: unknown[]) => void };
  const open = callbacks.open;
  callbacks.open = (...args) => {
    const done = args.at(-1) as (error: Error) => void;
    wait(args[0]).then(() => open.apply(fs, args), done);
  };
  syncBuiltinESMExports();
}

/** On a loopback network, the source address identifies the node that connects. */
function nameSource(localAddress: string | undefined): void {
  if (localAddress === undefined) return;
  const prototype = net.Socket.prototype as unknown as { connect: (...args: unknown[]) => unknown };
  const connect = prototype.connect;
  prototype.connect = function (...args) {
    // `net.connect` has put its arguments into a list; a caller of the method has not. They are copied, because an HTTP agent
    // finds its sockets by the options that it has passed.
    const list = Array.isArray(args[0]) ? (args[0] as unknown[]) : args;
    const [first] = list;
    if (typeof first === 'object' && first !== null && 'port' in first) list[0] = { ...first, localAddress };
    return connect.apply(this, args);
  };
}
