/**
 * Requests to hosts: the policy of hosts and addresses, retries, and parts of files. Invariant: each address is checked before it is
 * connected to, also after a redirect. Imports files of a folder above and the part `async`.
 */
export { checkUrl, type HostPolicy, withoutSecrets } from './host-policy.js';
export { type Authorizer, HttpClient, type RemoteCounts, type RemoteRequest } from './http-client.js';
export { type ByteRange, mergeRanges } from './merge-ranges.js';
export { RemoteFile } from './remote-file.js';
