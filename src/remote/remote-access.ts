/** Opens clients that fetch within the limits of a node, with its credentials. */
import { type CredentialRules, RemoteCredentials } from './credentials/index.js';
import { type HostPolicy, HttpClient } from './http/index.js';

export interface RemoteAccess {
  policy: HostPolicy;
  /** Reads the credentials, none by default. Throws TW_REMOTE_CREDENTIALS. */
  readRules?(): Promise<CredentialRules>;
}

export interface RemoteClient {
  client: HttpClient;
  /** True for an address in S3 that is read rather than one of the same file over HTTP. */
  prefersS3(address: string): boolean;
}

/** `catalog`: address of the catalog whose files are read. The caller closes the client. Throws TW_REMOTE_CREDENTIALS. */
export async function openRemoteClient(
  { policy, readRules }: RemoteAccess,
  catalog: string | undefined,
): Promise<RemoteClient> {
  const rules = await readRules?.();
  if (!rules) return { client: new HttpClient(policy), prefersS3: () => false };
  const credentials = new RemoteCredentials(rules, policy, catalog);
  return {
    client: new HttpClient(policy, credentials),
    prefersS3: (address) => credentials.prefersS3(address),
  };
}
