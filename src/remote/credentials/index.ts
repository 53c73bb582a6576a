/**
 * Credentials for archives: bearer tokens, logins of `.netrc`, signed addresses and S3. Invariant: a credential is sent only to the hosts
 * it belongs to, and occurs in no message or record. Imports the folder `http`, files of a folder above and `utils`.
 */
export { type CredentialRules, readCredentialRules } from './credential-rules.js';
export { RemoteCredentials } from './remote-credentials.js';
