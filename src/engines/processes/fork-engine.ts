/** Starts the processes in which an engine runs. `EngineProcess` communicates with them. */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { EngineName } from '../load-engine.js';

export interface ForkOptions {
  /** Threads of the engine, if it can use more than one. */
  threads?: number;
  /** Number of streams besides the channel, from file descriptor 4. */
  streams?: number;
  /**
   * Limit on the memory of the process in bytes: heap, WebAssembly and libraries. On Linux only, where the kernel counts private writable
   * mappings (RLIMIT_DATA). A limit on the address space (RLIMIT_AS) is unsuitable, because V8 reserves far more of it than it uses. Such
   * a process also has no helper threads of V8, so that it uses one core.
   */
  limit?: number;
  /** With a limit: the only core that it may use, one of `allowedCpus`. */
  core?: number;
}

/** Sets the limit, then executes the program. A core dump would be as large as the limit. */
const LIMITED = 'ulimit -c 0; ulimit -d "$0" && exec "$@"';

/** Runs `script`, which must call `serveRequests`, with the name of the engine as its argument. The caller reads stderr. */
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
        '-c',
        LIMITED,
        String(Math.floor(limit / 1024)),
        ...(core === undefined ? [] : ['taskset', '-c', String(core)]),
        process.execPath,
        '--v8-pool-size=0',
      ],
    }),
    stdio: ['ignore', 'ignore', 'pipe', 'ipc', ...new Array<'pipe'>(streams).fill('pipe')],
    env: {
      ...process.env,
      // Spinning OpenMP threads would use the cores of the other children; the library reads this only at its start.
      OMP_WAIT_POLICY: 'passive',
      OMP_NUM_THREADS: String(threads),
      TF_CPP_MIN_LOG_LEVEL: '2',
      TF_NUM_INTRAOP_THREADS: String(threads),
      TF_NUM_INTEROP_THREADS: '1',
      // The oneDNN in TensorFlow adds in an order that depends on the number of available cores.
      TF_ENABLE_ONEDNN_OPTS: '0',
      // Otherwise the first child allocates all memory of a GPU.
      TF_FORCE_GPU_ALLOW_GROWTH: 'true',
    },
  });
}
