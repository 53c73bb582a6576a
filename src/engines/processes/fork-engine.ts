/** Starts the processes in which an engine runs; `EngineProcess` speaks with them. */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { EngineName } from '../load-engine.js';

export interface ForkOptions {
  /** Of the engine, where it can use more than one. */
  threads?: number;
  /** How many streams it has beside its channel, from file descriptor 4. */
  streams?: number;
  /**
   * Bytes of memory of its own that it may have, of the heap, of WebAssembly and of libraries; it is refused more. On Linux, where the
   * kernel counts what is mapped for writing (RLIMIT_DATA). The address space (RLIMIT_AS) would not do: V8 reserves far more of it than
   * it uses. Such a process also has no helper threads of V8, so that it takes one core.
   */
  limit?: number;
  /** With a limit: the only core that it may use, one of `allowedCpus`. */
  core?: number;
}

/** Sets its own limit, then becomes the program. A core dump would be as large as the limit. */
const LIMITED = 'ulimit -c 0; ulimit -d "$0" && exec "$@"';

/** Runs `script`, which calls `serveRequests`, with the engine's name as its argument. The caller reads stderr. */
export function forkWithEngine(
  script: URL,
  engine: EngineName,
  { threads = 1, streams = 0, limit, core }: ForkOptions = {},
): ChildProcess {
  return fork(fileURLToPath(script), [engine], {
    serialization: 'advanced',
    ...(limit !== undefined && {
      execPath: '/bin/sh',
      execArgv: [
        ...['-c', LIMITED, String(Math.floor(limit / 1024))],
        ...(core === undefined ? [] : ['taskset', '-c', String(core)]),
        ...[process.execPath, '--v8-pool-size=0'],
      ],
    }),
    stdio: ['ignore', 'ignore', 'pipe', 'ipc', ...new Array<'pipe'>(streams).fill('pipe')],
    env: {
      ...process.env,
      // Spinning OpenMP threads take the cores from the other children; the library reads this once, at its start.
      OMP_WAIT_POLICY: 'passive',
      OMP_NUM_THREADS: String(threads),
      TF_CPP_MIN_LOG_LEVEL: '2',
      TF_NUM_INTRAOP_THREADS: String(threads),
      TF_NUM_INTEROP_THREADS: '1',
      // The oneDNN inside of TensorFlow adds in an order that depends on the number of cores that the process may use.
      TF_ENABLE_ONEDNN_OPTS: '0',
      // Else the first child takes all of a GPU's memory.
      TF_FORCE_GPU_ALLOW_GROWTH: 'true',
    },
  });
}
