/**
 * Adds the credentials of the operator to requests: bearer tokens, logins, tokens of signed addresses, and signatures of S3. Invariant: a
 * credential is sent only to the hosts that it belongs to, and occurs in no message or record.
 */
import { createHash, createHmac, type Hash, type Hmac } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { parseJson } from '../utils/json-text.js';
import { type AuthorizedRequest, HttpClient, type RequestCredentials } from './client.js';
import type { CredentialRules, S3Rule, SasRule } from './credential-rules.js';
import { badCredentials, badRemoteUrl } from './errors.js';
import { type HostPolicy, matchesHost, withoutSecrets } from './hosts.js';

/** Region in which most archives keep their scenes. The answer for a bucket in another region names it. */
const DEFAULT_REGION = 'us-west-2';
/** SHA-256 of an empty body. */
const EMPTY_SHA256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

interface AwsKeys {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string;
}

/**
 * Requests for objects in S3: their addresses over HTTP, and their signatures (AWS Signature Version 4). Invariant: a request is signed
 * with the keys of the first rule that names its bucket.
 */
class S3Requests {
  private readonly regions = new Map<string, string>();
  private readonly keys = new Map<S3Rule, () => Promise<AwsKeys | undefined>>();

  constructor(private readonly rules: readonly S3Rule[]) {}

  /** The rule for an object; undefined if no rule names its bucket. */
  ruleForAddress(address: string): S3Rule | undefined {
    const [, bucket] = S3_ADDRESS.exec(address) ?? [];
    return bucket === undefined ? undefined : this.ruleFor(bucket);
  }

  /** Returns the signed request for an object, or an unsigned one if no keys are known. Throws TW_REMOTE_BAD_URL. */
  async authorize(address: string, method: string): Promise<AuthorizedRequest> {
    const { bucket, key } = parseS3(address);
    const rule = this.ruleFor(bucket) ?? { sign: false };
    const region = this.regions.get(bucket) ?? rule.region ?? DEFAULT_REGION;
    const url = objectUrl(bucket, key, region, rule.endpoint);
    const keys = rule.sign === false ? undefined : await this.keysOf(rule);
    if (!keys) return { url: url.href, headers: {} };
    const { SignatureV4 } = await import('@smithy/signature-v4');
    const signer = new SignatureV4({
      ...{ credentials: keys, region, service: 's3', sha256: Sha256, uriEscapePath: false },
    });
    const { host, hostname, port, protocol, pathname: path } = url;
    const signed = await signer.sign({
      ...{ method, protocol, hostname, path, ...(port && { port: Number(port) }) },
      headers: {
        host,
        'x-amz-content-sha256': EMPTY_SHA256,
        ...(rule.requesterPays && { 'x-amz-request-payer': 'requester' }),
      },
    });
    return { url: url.href, headers: signed.headers };
  }

  /** Remembers the region that an answer names. Returns true if it was not known. */
  learnRegion(address: string, region: string): boolean {
    const { bucket } = parseS3(address);
    if (this.ruleFor(bucket)?.endpoint !== undefined || this.regions.get(bucket) === region) return false;
    this.regions.set(bucket, region);
    return true;
  }

  private ruleFor(bucket: string): S3Rule | undefined {
    return this.rules.find(({ buckets }) => !buckets || buckets.includes(bucket));
  }

  private keysOf(rule: S3Rule): Promise<AwsKeys | undefined> {
    const known = this.keys.get(rule) ?? keyProvider(rule);
    this.keys.set(rule, known);
    return known();
  }
}

function keyProvider(rule: S3Rule): () => Promise<AwsKeys | undefined> {
  const { accessKeyId, secretAccessKey, sessionToken, profile, buckets } = rule;
  if (accessKeyId !== undefined && secretAccessKey !== undefined)
    return async () => ({ accessKeyId, secretAccessKey, sessionToken });
  let chain: Promise<() => Promise<AwsKeys>> | undefined;
  return async () => {
    chain ??= import('@aws-sdk/credential-provider-node').then(({ defaultProvider }) =>
      defaultProvider({ profile }),
    );
    const provide = await chain;
    // Public buckets need no keys. A bucket that the operator has named does.
    return provide().catch((error) => {
      if (buckets || rule.requesterPays || profile !== undefined) throw error;
      return undefined;
    });
  };
}

const S3_ADDRESS = /^s3:\/\/([a-z0-9][a-z0-9._-]{1,62})\/([^?#]+)$/i;

function parseS3(address: string): { bucket: string; key: string } {
  const [, bucket, key] = S3_ADDRESS.exec(address) ?? [];
  if (bucket === undefined || key === undefined)
    throw badRemoteUrl(address.slice(0, 200), 'an object in S3 is named s3://BUCKET/KEY');
  // A URL would lead such a key to another bucket.
  if (
    decoded(key)
      .split(/[\\/]/)
      .some((part) => part === '.' || part === '..')
  )
    throw badRemoteUrl(address.slice(0, 200), 'its key has a part "." or ".."');
  return { bucket, key };
}

function objectUrl(bucket: string, key: string, region: string, endpoint: string | undefined): URL {
  const path = decoded(key)
    .split('/')
    .map((part) => encodeURIComponent(part).replace(/[!'()*]/g, escapeCharacter))
    .join('/');
  // A bucket whose name has a dot does not match the certificates of *.s3.REGION.amazonaws.com.
  const isInPath = endpoint !== undefined || bucket.includes('.');
  const origin = endpoint ?? `https://s3.${region}.amazonaws.com`;
  return isInPath
    ? new URL(`${origin.replace(/\/$/, '')}/${bucket}/${path}`)
    : new URL(`https://${bucket}.s3.${region}.amazonaws.com/${path}`);
}

/** Relative references in Items are resolved to URLs, which escape characters of a key. */
function decoded(key: string): string {
  try {
    return decodeURIComponent(key);
  } catch (error) {
    if (error instanceof URIError) return key;
    throw error;
  }
}

const escapeCharacter = (character: string) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`;

/** SHA-256 in the form that the signer uses, with a secret as HMAC. */
class Sha256 {
  private readonly create: () => Hash | Hmac;
  private hash: Hash | Hmac;

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    const key = secret === undefined || typeof secret === 'string' ? secret : bytesOf(secret);
    this.create = () => (key === undefined ? createHash('sha256') : createHmac('sha256', key));
    this.hash = this.create();
  }

  update(data: string | Uint8Array): void {
    this.hash.update(data);
  }

  async digest(): Promise<Uint8Array> {
    return this.hash.digest();
  }

  reset(): void {
    this.hash = this.create();
  }
}

const bytesOf = (data: ArrayBuffer | ArrayBufferView): Uint8Array =>
  ArrayBuffer.isView(data)
    ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
    : new Uint8Array(data);

/** A token is replaced this long before it expires, so that it is valid when a request arrives; a short one after half of its time. */
const TOKEN_MARGIN_MS = 300_000;
const MAX_ANSWER_BYTES = 100_000;
/** Tokens without an expiry are used this long. */
const DEFAULT_TOKEN_LIFETIME_MS = 1_800_000;
const NOT_FOUND = 404;

interface Token {
  /** The query of a signed address; empty if the service does not sign this container. */
  query: string;
  /** Time from which a new token is requested; ms since 1970. */
  renewAt: number;
}

/**
 * Tokens of services that sign addresses of Azure's object store, as that of Planetary Computer does. Invariant: at most one request for
 * the token of a container is in progress.
 */
class SasTokens {
  private readonly tokens = new Map<string, Promise<Token>>();

  constructor(private readonly client: HttpClient) {}

  /** Returns the address with a token. Throws TW_REMOTE_..., and TW_REMOTE_CREDENTIALS if the answer has no token. */
  async sign(url: URL, tokenUrl: string, signal?: AbortSignal): Promise<string> {
    const key = tokenAddress(url, tokenUrl);
    const current = this.tokens.get(key);
    let token = await current;
    if (!token || token.renewAt < Date.now()) {
      // Another caller may have replaced it by then.
      if (this.tokens.get(key) === current) this.tokens.delete(key);
      token = await this.fetchOnce(key, signal);
    }
    const signed = new URL(url);
    if (token.query !== '') signed.search += `${signed.search === '' ? '?' : '&'}${token.query}`;
    return signed.href;
  }

  /** Forgets the token of an address. Returns false if no token was used. */
  forget(url: URL, tokenUrl: string): boolean {
    return this.tokens.delete(tokenAddress(url, tokenUrl));
  }

  private fetchOnce(key: string, signal?: AbortSignal): Promise<Token> {
    const known = this.tokens.get(key);
    if (known) return known;
    const fetched = this.fetch(key, signal);
    this.tokens.set(key, fetched);
    // The callers get the error. The next request tries again.
    fetched.catch(() => this.tokens.delete(key));
    return fetched;
  }

  private async fetch(address: string, signal?: AbortSignal): Promise<Token> {
    const { status, body } = await this.client.request(address, {
      ...{ maxBytes: MAX_ANSWER_BYTES, accept: [NOT_FOUND], signal },
    });
    if (status === NOT_FOUND) return { query: '', renewAt: Date.now() + DEFAULT_TOKEN_LIFETIME_MS };
    let answer: { token?: unknown; 'msft:expiry'?: unknown };
    try {
      answer = parseJson(body.toString('utf8')) as typeof answer;
    } catch (error) {
      throw badCredentials.because(error, withoutSecrets(address), 'its answer is not JSON');
    }
    if (typeof answer?.token !== 'string')
      throw badCredentials(withoutSecrets(address), 'its answer holds no token');
    const expires = Date.parse(String(answer['msft:expiry']));
    const lifetime = Number.isNaN(expires) ? DEFAULT_TOKEN_LIFETIME_MS : Math.max(0, expires - Date.now());
    return {
      query: answer.token.replace(/^\?/, ''),
      renewAt: Date.now() + Math.max(lifetime - TOKEN_MARGIN_MS, lifetime / 2),
    };
  }
}

/** Tokens are made for a container of an account: https://ACCOUNT.blob.core.windows.net/CONTAINER/PATH. */
function tokenAddress({ hostname, pathname }: URL, tokenUrl: string): string {
  const [account] = hostname.split('.');
  const [, container = ''] = pathname.split('/');
  const url = new URL(tokenUrl);
  url.pathname = `${url.pathname.replace(/\/$/, '')}/${account}/${container}`;
  return url.href;
}

const REFUSED_STATUS = [401, 403];

/** Invariant: a credential is added only to requests for the hosts and buckets of its rule; each redirect is checked again. */
class RemoteCredentials implements RequestCredentials {
  /** It sends no credentials. */
  private readonly client: HttpClient;
  private readonly tokens: SasTokens;
  private readonly s3: S3Requests;
  private readonly sas: SasRule[];

  /** `policy`: for requests of tokens. `catalog`: address of the catalog that is read. */
  constructor(
    private readonly rules: CredentialRules,
    policy: HostPolicy,
    catalog: string | undefined,
  ) {
    this.client = new HttpClient(policy);
    this.tokens = new SasTokens(this.client);
    this.s3 = new S3Requests(rules.s3);
    const host = catalog !== undefined && URL.canParse(catalog) ? new URL(catalog).host : undefined;
    this.sas = rules.sas.filter((rule) => rule.catalog === undefined || rule.catalog === host);
  }

  async authorize(address: string, method: string, signal?: AbortSignal): Promise<AuthorizedRequest> {
    if (isS3(address)) return this.s3.authorize(address, method);
    const url = URL.canParse(address) ? new URL(address) : undefined;
    if (!url) return { url: address, headers: {} };
    const sas = this.sasFor(url);
    if (sas) return { url: await this.tokens.sign(url, sas.tokenUrl, signal), headers: {} };
    return { url: address, headers: this.authorizationFor(url) };
  }

  renew(address: string, { status, headers }: { status: number; headers: IncomingHttpHeaders }): boolean {
    if (isS3(address)) {
      const region = headers['x-amz-bucket-region'];
      return typeof region === 'string' &&
        /^[a-z0-9-]{1,30}$/.test(region) &&
        status !== 200 &&
        status !== 206
        ? this.s3.learnRegion(address, region)
        : false;
    }
    const url = new URL(address);
    const sas = this.sasFor(url);
    return sas !== undefined && REFUSED_STATUS.includes(status) && this.tokens.forget(url, sas.tokenUrl);
  }

  /** True for an object of a bucket that the operator has named, or whose reader pays. */
  prefersS3(address: string): boolean {
    const rule = this.s3.ruleForAddress(address);
    return rule !== undefined && (rule.buckets !== undefined || rule.requesterPays === true);
  }

  close(): void {
    this.client.close();
  }

  /** Addresses that are signed already stay as they are. */
  private sasFor(url: URL): SasRule | undefined {
    if (url.searchParams.has('sig')) return undefined;
    return this.sas.find(({ hosts }) => hosts.some((host) => belongsTo(host, url)));
  }

  private authorizationFor(url: URL): Record<string, string> {
    const bearer = this.rules.bearer.find(({ hosts }) => hosts.some((host) => belongsTo(host, url)));
    if (bearer) return { authorization: `Bearer ${bearer.token}` };
    const login = this.rules.logins.get(url.hostname);
    if (!login || (url.protocol === 'http:' && !LOOPBACK.test(url.hostname))) return {};
    const pair = Buffer.from(`${login.login}:${login.password}`).toString('base64');
    return { authorization: `Basic ${pair}` };
  }
}

/** Without TLS, only a rule with exactly this host and port applies, because others can read the request. */
const belongsTo = (pattern: string, url: URL): boolean =>
  url.protocol === 'http:' ? pattern === url.host : matchesHost(pattern, url);

/** Entries of `.netrc` have no port. */
const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

const isS3 = (address: string) => /^s3:\/\//i.test(address);

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

/**
 * Opens a client that fetches within the limits of a node, with its credentials. `catalog`: address of the catalog whose files are read.
 * The caller closes the client. Throws TW_REMOTE_CREDENTIALS.
 */
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
