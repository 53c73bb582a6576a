/**
 * Lines of a given rate and delay between namespaces, in place of the bridge that joins them otherwise: the kernel's own way, netem, is
 * not in every kernel. The program that does it is switch.py.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { NamespaceNetwork } from '../../test/cluster/network/namespaces.js';
import { endsWithUs } from '../support/peer-process.js';

const SWITCH = fileURLToPath(new URL('../../../bench/training/switch.py', import.meta.url));
const ip = (...args: string[]) => promisify(execFile)('ip', args);

export interface Line {
  /** Bits a second, each way. */
  rate: number;
  /** Seconds, one way. */
  delay: number;
}

export interface Shaped {
  /** Process that forwards the frames. */
  pid: number;
  /** Connects them by the bridge again. */
  end(): Promise<void>;
}

export async function shape(network: NamespaceNetwork, { rate, delay }: Line): Promise<Shaped> {
  const { bridge, cables } = network;
  const [own, port] = [`${bridge}h`, `${bridge}p`] as const;
  await ip('link', 'add', own, 'type', 'veth', 'peer', 'name', port);
  await ip('link', 'set', own, 'master', bridge, 'up');
  // This machine must not answer for itself on the switch's side.
  await ip('link', 'set', port, 'arp', 'off', 'up');
  for (const cable of cables) await ip('link', 'set', cable, 'nomaster', 'arp', 'off');
  const args = [SWITCH, `${rate}`, `${delay}`, port, ...cables];
  const child = endsWithUs(spawn('python3', args, { stdio: ['pipe', 'pipe', 'inherit'] }));
  const closed = once(child, 'close');
  await Promise.race([
    once(child.stdout, 'data'),
    closed.then(() => Promise.reject(new Error('the switch has ended'))),
  ]);
  return {
    pid: child.pid!,
    end: async () => {
      child.stdin.end();
      await closed;
      for (const cable of cables) await ip('link', 'set', cable, 'master', bridge, 'arp', 'on');
      await ip('link', 'del', own);
    },
  };
}
