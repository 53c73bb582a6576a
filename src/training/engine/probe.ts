/**
 * A short child process that tries one engine: loads it and checks its gradients. A native library that crashes, hangs or
 * prints takes only this process along.
 */
import { messageOf } from '../../errors.js';
import { engineUnavailable } from '../errors.js';
import { type EngineName, loadEngine } from './load-engine.js';
import { gradientSelfTest } from './self-test.js';

/** What the child sends before it ends. */
export type ProbeAnswer = { works: true; version: string } | { works: false; reason: string };

async function probe(name: EngineName, packagesFrom: string | undefined): Promise<ProbeAnswer> {
  try {
    const { tf, version } = await loadEngine(name, packagesFrom);
    const { passed, error, where } = await gradientSelfTest(tf);
    if (passed) return { works: true, version };
    return {
      works: false,
      reason: `gradient self-test failed: ${where} is off by ${error.toExponential(1)} of its size`,
    };
  } catch (error) {
    // The wrapper of a loading error repeats the engine's name; its cause is the reason.
    const reason = engineUnavailable.is(error) && error.cause !== undefined ? error.cause : error;
    return { works: false, reason: messageOf(reason).split('\n', 1)[0] };
  }
}

const [name, packagesFrom] = process.argv.slice(2);
const answer = await probe(name as EngineName, packagesFrom);
process.send?.(answer, () => process.exit(0));
