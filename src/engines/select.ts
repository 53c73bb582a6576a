/** Selects the training engine: the first of tfjs-node-gpu, WASM with oneDNN, WASM and tfjs-node that works on this machine. */

import { engineUnavailable, noEngine } from './errors.js';
import { ENGINE_NAMES, type EngineName } from './load.js';
import type { ProbeHandlers, ProbeResult } from './probe.js';
import { EngineProcess, ProcessEnded } from './processes.js';

export interface SelectedEngine {
  name: EngineName;
  version: string;
  /** Faster engines, each with the reason why it was not selected. */
  why: { engine: EngineName; reason: string }[];
}

interface EngineChoice {
  /** Only this engine is tried. */
  engine?: string;
  /** A file beside whose `node_modules` the tfjs-node packages are searched. Default: this installation. */
  packagesFrom?: string;
  /** Maximum time for an engine to load and pass its self-test. Default: 60,000 ms, because a GPU may compile its kernels. */
  timeoutMs?: number;
}

/**
 * Tries the engines in child processes, fastest first, and returns the first that loads, uses a GPU if it should, and passes the gradient
 * self-test. Throws TW_TRAIN_ENGINE (the requested engine does not work) or TW_TRAIN_NO_ENGINE.
 */
export async function selectEngine(choice: EngineChoice = {}): Promise<SelectedEngine> {
  const candidates = choice.engine === undefined ? ENGINE_NAMES : [engineNamed(choice.engine)];
  const why: SelectedEngine['why'] = [];
  for (const name of candidates) {
    const answer = await probeEngine(name, choice);
    if (answer.works) return { name, version: answer.version, why };
    why.push({ engine: name, reason: answer.reason });
  }
  if (choice.engine !== undefined) throw engineUnavailable(choice.engine, why[0].reason);
  throw noEngine(why.map(({ engine, reason }) => `${engine}: ${reason}`).join('; '));
}

const selectedEngines = new Map<string | undefined, Promise<SelectedEngine>>();

/** `selectEngine` for this installation. A result is cached as long as the process runs; after a failure the next call tries again. */
export function selectEngineCached(engine?: string): Promise<SelectedEngine> {
  const known = selectedEngines.get(engine);
  if (known) return known;
  const tried = selectEngine({ engine });
  selectedEngines.set(engine, tried);
  tried.catch(() => selectedEngines.delete(engine));
  return tried;
}

function engineNamed(name: string): EngineName {
  const known = ENGINE_NAMES.find((candidate) => candidate === name);
  if (known !== undefined) return known;
  const reason =
    name === 'cpu'
      ? 'the plain JavaScript backend is too slow for training and has a wrong gradient'
      : `it is not one of ${ENGINE_NAMES.join(', ')}`;
  throw engineUnavailable(name, reason);
}

async function probeEngine(
  name: EngineName,
  { packagesFrom, timeoutMs = 60_000 }: EngineChoice,
): Promise<ProbeResult> {
  const child = new EngineProcess<ProbeHandlers>(new URL('./probe.bundle.js', import.meta.url), name, {
    quiet: true,
  });
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    return await child.request('probe', { engine: name, packagesFrom }, { signal });
  } catch (error) {
    if (signal.aborted) return { works: false, reason: `it did not answer within ${timeoutMs / 1000} s` };
    if (error instanceof ProcessEnded) return { works: false, reason: `it ended with ${error.message}` };
    throw error;
  } finally {
    child.close();
  }
}
