/** Child processes as the kernel lists them. */
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

export const HAS_PROC = process.platform === 'linux';

/** Ids of the running children of a process, by default of this one. */
export function children(parent = process.pid): number[] {
  return childrenOf(parent, (status) => !status.includes('State:\tZ'));
}

/** Ids of the children of a process whose status, as in /proc, passes. */
function childrenOf(parent: number, passes: (status: string) => boolean): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const status = readFileSync(`/proc/${pid}/status`, 'utf8');
        return status.includes(`PPid:\t${parent}\n`) && passes(status);
      } catch {
        return false; // It ended while we looked.
      }
    })
    .map(Number);
}

/**
 * Resolves when this process has noticed the end of all its children. Killed processes take a moment to go; a child that stays hangs the
 * test.
 */
export async function childrenGone(): Promise<void> {
  while (childrenOf(process.pid, () => true).length > 0) await sleep(20);
}

/** True if the process runs, as far as this user may know. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
