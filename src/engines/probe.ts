/**
 * Child process that tries one engine: loads it and checks its gradients. If a native library crashes, hangs or prints, only this process
 * is affected.
 */
import { messageOf } from '../errors.js';
import { engineUnavailable, noEngine } from './errors.js';
import { type EngineName, loadEngine } from './load.js';
import { type Handler, serveRequests } from './processes.js';
import { selfTest } from './self-test.js';

/** `reason`: one line that says why the engine does not work. */
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
      reason: `self-test failed: ${where} has a relative error of ${error.toExponential(1)}`,
    };
  } catch (error) {
    // The error of `loadEngine` repeats the name of the engine; its cause is the reason.
    const reason = engineUnavailable.is(error) && error.cause !== undefined ? error.cause : error;
    return { works: false, reason: messageOf(reason).split('\n', 1)[0] };
  }
};

serveRequests<ProbeHandlers>({ probe }, noEngine);
