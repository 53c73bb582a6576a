/**
 * A short child process that tries one engine: loads it and checks its gradients. A native library that crashes, hangs or
 * prints takes only this process along.
 */
import { messageOf } from '../errors.js';
import { engineUnavailable, noEngine } from './errors.js';
import { type EngineName, loadEngine } from './load-engine.js';
import { type Handler, serveRequests } from './processes/serve-requests.js';
import { selfTest } from './self-test.js';

/** `reason` says in one line why the engine does not work. */
export type ProbeResult = { works: true; version: string } | { works: false; reason: string };

export type ProbeHandlers = {
  probe: Handler<{ engine: EngineName; packagesFrom: string | undefined }, ProbeResult>;
};

const probe: ProbeHandlers['probe'] = async ({ engine, packagesFrom }) => {
  try {
    const { tf, version } = await loadEngine(engine, packagesFrom);
    const { passed, error, where } = await selfTest(tf);
    if (passed) return { works: true, version };
    return {
      works: false,
      reason: `self-test failed: ${where} is off by ${error.toExponential(1)} of its size`,
    };
  } catch (error) {
    // The wrapper of a loading error repeats the engine's name; its cause is the reason.
    const reason = engineUnavailable.is(error) && error.cause !== undefined ? error.cause : error;
    return { works: false, reason: messageOf(reason).split('\n', 1)[0] };
  }
};

serveRequests<ProbeHandlers>({ probe }, noEngine);
