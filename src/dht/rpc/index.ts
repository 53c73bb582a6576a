/**
 * Signed requests between nodes, with a checksum on every body. Invariant: an altered or malformed answer counts as no answer. Imports
 * only `errors.ts` and `json-schema.ts`; knows nothing of the content of messages.
 */

export { sign, verifySignature } from './message-signature.js';
export { CHECKSUM_HEADER, MESSAGE_TYPE, type Peer, PeerClient } from './peer-rpc-client.js';
export { encodeLine, NDJSON_TYPE, streamLines } from './peer-stream.js';
export { TIME_HEADER } from './rpc-clock-offsets.js';
export { limitConnectTime } from './rpc-connect-timeout.js';
export { HANDSHAKE_PATH, handshake } from './rpc-handshake.js';
