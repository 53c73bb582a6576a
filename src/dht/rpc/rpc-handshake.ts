/** A handshake with the running nodes of a cluster. */
import { TilewrightError } from '../../errors.js';
import { messageCheck, objectOf } from '../../utils/json-schema.js';
import { peerRefused } from '../errors.js';
import type { Peer, PeerClient } from './peer-rpc-client.js';

export const HANDSHAKE_PATH = '/cluster/internal/greeting';
const TIMEOUT_MS = 1000;
const checkHandshake = messageCheck(objectOf({}));

/**
 * Throws TW_DHT_REFUSED if one of `others` refuses the messages of this node; later, a refusal would only show as answers without tiles.
 * A node that does not answer is ignored.
 */
export async function handshake(peers: PeerClient, others: readonly Peer[]): Promise<void> {
  await Promise.all(
    others.map(async (peer) => {
      try {
        await peers.call(peer, HANDSHAKE_PATH, {}, TIMEOUT_MS, checkHandshake);
      } catch (error) {
        const { cause } = error as Error;
        if (!(cause instanceof TilewrightError) || cause.status !== 401) return;
        throw peerRefused.because(error, peer.id, peer.url, cause.message);
      }
    }),
  );
}
