/**
 * Reads from hosts on the internet: requests within a policy of hosts, parts of files, and STAC catalogs. Invariants: each address is
 * checked against the policy before a connection to it is opened, redirects included; documents of STAC are read within limits of size and
 * number. Imports the parts `async`, `grid` (types) and `query`.
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
