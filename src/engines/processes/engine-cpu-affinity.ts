import { spawnSync } from 'node:child_process';

/**
 * Returns the numbers of the cores that this process may use. Empty without `taskset` (util-linux), which reads the affinity and pins
 * children.
 */
export function allowedCpus(): number[] {
  const { status, stdout } = spawnSync('taskset', ['-cp', String(process.pid)], { encoding: 'utf8' });
  if (status !== 0) return [];
  // "pid 12's current affinity list: 0-3,8"
  const list = stdout.slice(stdout.lastIndexOf(':') + 1);
  return list.split(',').flatMap((range) => {
    const [first, last = first] = range.split('-').map(Number) as [number, number?];
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  });
}
