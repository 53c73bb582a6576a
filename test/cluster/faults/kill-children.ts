import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Fault } from './fault.js';

export const killChildren: Fault = {
  name: 'kill-children',
  what: 'child processes of nodes, which train and predict, are killed repeatedly',
  trains: true,
  async begin({ nodes, settings }, _target, random) {
    const ending = new AbortController();
    const killing = (async () => {
      while (!ending.signal.aborted) {
        const node = random.pick(nodes);
        const children = await childrenOf(node.server.pid);
        if (children.length > 0) {
          settings.history.note(`a child of ${node.name} is killed`);
          kill(random.pick(children));
        }
        // In between some get so far as to work.
        await sleep(random.between(100, 2000));
      }
    })();
    return async () => {
      ending.abort();
      await killing;
    };
  },
};

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    // It has ended by itself.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Processes whose parent is `parent` (proc(5)). */
async function childrenOf(parent: number | undefined): Promise<number[]> {
  const found: number[] = [];
  for (const entry of await readdir('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    const stat = await readFile(`/proc/${entry}/stat`, 'utf8').catch(() => '');
    const afterName = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (Number(afterName[1]) === parent) found.push(Number(entry));
  }
  return found;
}
