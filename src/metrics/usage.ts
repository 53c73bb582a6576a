/** Measures a process with its descendants, and the bytes that its network namespace sends. Reads the files of proc(5). */
import { hash } from 'node:crypto';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

export interface ProcessUsage {
  /** CPU time of the process and of all processes that it has started, seconds. */
  cpuSeconds: number;
  /** Resident memory of these processes without mapped files, bytes. */
  memoryBytes: number;
  /** False if the system does not have /proc, and so the figures do not include child processes. */
  includesChildren: boolean;
  /** Absent if the system does not have /proc. */
  network?: {
    /** The same for all processes that share the interfaces. */
    namespace: string;
    /** Sent by all interfaces except the loopback. */
    sentBytes: number;
    loopbackBytes: number;
  };
}

/** Clock ticks per second on Linux. */
const TICKS_PER_SECOND = 100;

/** Returns the usage of process `pid` and its descendants; on a system without /proc, of the current process only. */
export function processUsage(pid: number = process.pid): ProcessUsage {
  const tree = processTree([pid]);
  if (tree.size === 0) {
    const { user, system } = process.cpuUsage();
    const memoryBytes = process.memoryUsage.rss();
    return { cpuSeconds: (user + system) / 1e6, memoryBytes, includesChildren: false };
  }
  const network = networkOf(pid);
  return {
    cpuSeconds: cpuSecondsOf(tree),
    memoryBytes: [...tree.keys()].reduce((sum, one) => sum + privateBytes(one), 0),
    includesChildren: true,
    ...(network && { network }),
  };
}

/**
 * The processes and their descendants, with the fields of /proc/PID/stat after the program's name: state, parent, ... Empty if the
 * system does not have /proc.
 */
export function processTree(roots: number[]): Map<number, string[]> {
  const all = new Map<number, string[]>();
  const children = new Map<number, number[]>();
  for (const pid of processes()) {
    const stat = textOf(`/proc/${pid}/stat`);
    // The process has ended since it was listed.
    if (stat === undefined) continue;
    const fields = stat.split(') ').at(-1)!.split(' ');
    const parent = Number(fields[1]);
    all.set(pid, fields);
    children.set(parent, [...(children.get(parent) ?? []), pid]);
  }
  const below = (pid: number): number[] => [pid, ...(children.get(pid) ?? []).flatMap(below)];
  return new Map(roots.flatMap(below).flatMap((pid) => (all.has(pid) ? [[pid, all.get(pid)!]] : [])));
}

/** CPU time of all processes of a tree and of their ended children. */
export function cpuSecondsOf(tree: ReturnType<typeof processTree>): number {
  const ticks = [...tree.values()]
    // utime, stime, cutime and cstime.
    .flatMap((fields) => fields.slice(11, 15))
    .reduce((sum, field) => sum + Number(field), 0);
  return ticks / TICKS_PER_SECOND;
}

/** Resident bytes without mapped files, which processes of one program share. */
function privateBytes(pid: number): number {
  const status = textOf(`/proc/${pid}/status`) ?? '';
  const kib = [...status.matchAll(/^Rss(?:Anon|Shmem):\s+(\d+) kB$/gm)].map(([, size]) => Number(size));
  return 1024 * kib.reduce((sum, size) => sum + size, 0);
}

function networkOf(pid: number): ProcessUsage['network'] {
  const table = textOf(`/proc/${pid}/net/dev`);
  const boot = textOf('/proc/sys/kernel/random/boot_id');
  if (table === undefined || boot === undefined) return undefined;
  const sent = { loopback: 0, other: 0 };
  // After two lines of titles, each line is `eth0:`, 8 numbers about received data, then the bytes sent.
  for (const line of table.split('\n').slice(2)) {
    const [name, figures] = line.split(':') as [string, string?];
    if (figures === undefined || isStacked(name.trim())) continue;
    sent[name.trim() === 'lo' ? 'loopback' : 'other'] += Number(figures.trim().split(/\s+/)[8]);
  }
  const link = unlessRefused(() => readlinkSync(`/proc/${pid}/ns/net`));
  // The process has ended, or belongs to another user.
  if (link === undefined) return undefined;
  const namespace = hash('sha256', boot + link).slice(0, 16);
  return { namespace, sentBytes: sent.other, loopbackBytes: sent.loopback };
}

/** True for a bond, a bridge or a VLAN, whose bytes the interface below counts too. */
function isStacked(name: string): boolean {
  const entries = unlessRefused(() => readdirSync(`/sys/class/net/${name}`)) ?? [];
  return entries.some((entry) => entry.startsWith('lower_'));
}

function processes(): number[] {
  const names = unlessRefused(() => readdirSync('/proc')) ?? [];
  return names.filter((name) => /^\d+$/.test(name)).map(Number);
}

const textOf = (path: string) => unlessRefused(() => readFileSync(path, 'latin1'));

/** Returns the result of `read`; undefined if the system lacks the file, or does not let this user read it. */
function unlessRefused<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
