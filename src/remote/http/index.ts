/**
 * Requests to hosts: the policy of hosts and addresses, retries, and parts of files. Invariant: each address is checked before a connection
 * to it is opened, redirects included. Imports files of a folder above and the part `async`.
 */
export { type DownloadTarget, downloadFile, type FileVersion } from './download-file.js';
export {
  checkUrl,
  type HostPolicy,
  MAX_URL_CHARS,
  matchesHost,
  NO_HOSTS,
  withoutSecrets,
  withoutSignature,
} from './host-policy.js';
export { type BodySink, HttpClient } from './http-client.js';
export { type ByteRange, mergeRanges } from './merge-ranges.js';
export { RemoteFile } from './remote-file.js';
export type { AuthorizedRequest, RequestCredentials } from './request-credentials.js';
