import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { atEnd } from './at-end.js';

/** Mounts a tmpfs of this many MB. Returns undefined and skips the test if it cannot be mounted. */
export async function smallDisk(t: TestContext, megabytes: number): Promise<string | undefined> {
  const disk = await mkdtemp(join(tmpdir(), 'tilewright-disk-'));
  let mounted = false;
  atEnd(t, async () => {
    if (mounted) execFileSync('umount', ['-l', disk]);
    await rm(disk, { recursive: true });
  });
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', disk], { stdio: 'pipe' });
    mounted = true;
    return disk;
  } catch {
    t.skip('a small file system cannot be mounted here');
    return undefined;
  }
}
