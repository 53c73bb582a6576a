/**
 * Reads from hosts on the internet: requests within a policy of hosts, parts of files, and STAC catalogs. Invariant: nothing is requested
 * from an address that the operator has not allowed. Imports the parts `async`, `grid` (types) and `query`.
 */

export { HttpClient } from './client.js';
export { type CredentialRules, readCredentialRules } from './credential-rules.js';
export { openRemoteClient, type RemoteAccess, type RemoteClient } from './credentials.js';
export { badStacDocument, noRanges, remoteChanged, remoteTooLarge } from './errors.js';
export {
  type ByteRange,
  type DownloadTarget,
  downloadFile,
  type FileVersion,
  mergeRanges,
  RemoteFile,
} from './files.js';
export { checkUrl, type HostPolicy, NO_HOSTS, withoutSecrets, withoutSignature } from './hosts.js';
export { itemOf, linksOf, type RemoteItem, readDocument } from './stac-documents.js';
export { findItems, itemMatcher } from './stac-items.js';
export type { StacQuery } from './stac-search.js';
