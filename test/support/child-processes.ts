/** Child processes as the kernel lists them. */
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

export const HAS_PROC = process.platform === 'linux';

/** Ids of the running children of a process, by default of this one. */
export function children(parent = process.pid): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const status = readFileSync(`/proc/${pid}/status`, 'utf8');
        return status.includes(`PPid:\t${parent}\n`) && !status.includes('State:\tZ');
      } catch {
        return false; // It ended while we looked.
      }
    })
    .map(Number);
}

/** Killed processes take a moment to go; a child that stays hangs the test. */
export async function childrenGone(): Promise<void> {
  while (children().length > 0) await sleep(20);
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
