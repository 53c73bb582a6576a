import { statSync } from 'node:fs';
import module from 'node:module';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** From Node 22.1. The types are those of Node 20. */
interface CompileCache {
  enableCompileCache?(folder: string): unknown;
}

/**
 * Lets Node keep compiled code between commands, in the cache folder of the user. Node does nothing if it cannot write there, and
 * NODE_DISABLE_COMPILE_CACHE and NODE_COMPILE_CACHE take precedence. Node's own folder, below /tmp, is open to other users.
 */
export function enableCompileCache(): void {
  const folder = userCacheFolder();
  if (folder !== undefined) (module as CompileCache).enableCompileCache?.(folder);
}

/** Undefined if the home folder cannot be found or belongs to another user, as with `sudo` that keeps HOME. */
function userCacheFolder(): string | undefined {
  try {
    const { XDG_CACHE_HOME } = process.env;
    const parent = XDG_CACHE_HOME || homedir();
    if (process.geteuid && statSync(parent).uid !== process.geteuid()) return undefined;
    return join(parent, XDG_CACHE_HOME ? 'tilewright' : '.cache/tilewright');
  } catch {
    // The cache only saves time, so a command also runs without it.
    return undefined;
  }
}
