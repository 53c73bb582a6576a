/** Starting the servers of other programs. */
import type { ChildProcess } from 'node:child_process';
import { createServer } from 'node:net';

/** Time limit for the start of a server. */
const START_TIMEOUT_MS = 60_000;

/** A server that is stopped with the benchmark, even if the benchmark is interrupted. SIGINT makes PostgreSQL stop quickly. */
export function endsWithUs<Child extends ChildProcess>(child: Child): Child {
  process.once('exit', () => child.kill('SIGINT'));
  return child;
}

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject).listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}

/** Waits until a child is ready. Returns false after a minute, or if the child ends. */
export async function until(isReady: () => Promise<boolean>, child: ChildProcess): Promise<boolean> {
  for (
    const end = performance.now() + START_TIMEOUT_MS;
    performance.now() < end && child.exitCode === null;
  ) {
    if (await isReady()) return true;
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
  return false;
}
