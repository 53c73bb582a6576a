/** Runs a program and measures it together with its descendants. */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpuSecondsOf, processTree } from '../../src/metrics/usage.js';

export interface TreeCost {
  stdout: string;
  /** CPU time of the program and its ended children. */
  cpuSeconds: number;
  wallSeconds: number;
  /**
   * Peak memory of all of them together, MB; 0 if the system has no /proc. Pages that several processes share, such as those of
   * libraries, count once: the figure is the sum of the proportional set sizes (PSS), which divide such a page among the processes.
   */
  peakMB: number;
}

const SAMPLE_INTERVAL_MS = 50;

export async function measureTree(program: string, args: string[], input = ''): Promise<TreeCost> {
  const started = performance.now();
  // When the program has ended, `times` prints the CPU time of the shell's children: 0m1.23s 0m0.45s.
  const script = '"$@"; code=$?; times >&2; exit $code';
  const child = spawn('sh', ['-c', script, 'sh', program, ...args], {
    env: { ...process.env, GDAL_PAM_ENABLED: 'NO', LC_ALL: 'C' },
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text) => {
    stderr += text;
  });
  child.stdin.end(input);
  let peakMB = 0;
  const sampling = setInterval(() => {
    peakMB = Math.max(peakMB, heldMB(child.pid as number, peakMB));
  }, SAMPLE_INTERVAL_MS);
  const code = await new Promise((resolve) => child.once('close', resolve));
  clearInterval(sampling);
  if (code !== 0) throw new Error(`${program} failed: ${stderr.slice(-2000)}`);
  const times = stderr.trim().split('\n').at(-1) ?? '';
  const cpuSeconds = [...times.matchAll(/(\d+)m([\d.]+)s/g)].reduce(
    (sum, [, minutes, seconds]) => sum + Number(minutes) * 60 + Number(seconds),
    0,
  );
  return { stdout, cpuSeconds, wallSeconds: (performance.now() - started) / 1000, peakMB };
}

/**
 * Memory of a process and its descendants; 0 if it is certainly not more than `known`. The resident set is quick to read and never
 * smaller than the proportional set, for which the system inspects every page (some milliseconds).
 */
function heldMB(root: number, known: number): number {
  const tree = processTree([root]);
  const sum = (mb: (pid: number) => number) => [...tree.keys()].reduce((total, pid) => total + mb(pid), 0);
  const residentMB = (pid: number) => (Number(tree.get(pid)![21]) * 4096) / 1e6;
  return sum(residentMB) <= known ? 0 : sum((pid) => proportionalMB(pid) ?? residentMB(pid));
}

/** CPU time of running processes and their descendants until now; 0 if the system has no /proc. */
export const treeCpuSeconds = (roots: number[]): number => cpuSecondsOf(processTree(roots));

/** The highest peak memory so far of a descendant of this process, MB; undefined without descendants. */
export function peakMBBelow(root: number): number | undefined {
  const peaks = [...processTree([root]).keys()].flatMap((pid) => (pid === root ? [] : (peakMB(pid) ?? [])));
  return peaks.length === 0 ? undefined : Math.max(...peaks);
}

/** Undefined if the process has ended. */
function peakMB(pid: number): number | undefined {
  try {
    const [, kib] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1')) ?? [];
    return kib === undefined ? undefined : (Number(kib) * 1024) / 1e6;
  } catch {
    return undefined;
  }
}

/** Undefined if the system does not report it. */
function proportionalMB(pid: number): number | undefined {
  try {
    const [, kib] = /^Pss: +(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1')) ?? [];
    return kib === undefined ? undefined : (Number(kib) * 1024) / 1e6;
  } catch {
    return undefined;
  }
}
