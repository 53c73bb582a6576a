import { spawnSync } from 'node:child_process';

/** Numbers of the cores that this process may use; none where there is no `taskset` (util-linux), which says so and holds others to them. */
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
