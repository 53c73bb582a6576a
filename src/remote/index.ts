/**
 * Reads from hosts on the internet: requests within a policy of hosts, parts of files, and STAC catalogs. Invariant: nothing is requested
 * from an address that the operator has not allowed. Imports the parts `async`, `grid` (types) and `query`.
 */
export { type CredentialRules, readCredentialRules } from './credentials/index.js';
export { badStacDocument, noRanges, remoteChanged, remoteTooLarge } from './errors.js';
export {
  type ByteRange,
  checkUrl,
  type DownloadTarget,
  downloadFile,
  type FileVersion,
  type HostPolicy,
  HttpClient,
  mergeRanges,
  NO_HOSTS,
  RemoteFile,
  withoutSecrets,
  withoutSignature,
} from './http/index.js';
export { openRemoteClient, type RemoteAccess, type RemoteClient } from './remote-access.js';
export {
  findItems,
  itemMatcher,
  itemOf,
  linksOf,
  type RemoteItem,
  readDocument,
  type StacQuery,
} from './stac/index.js';
