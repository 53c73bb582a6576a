/** Requests for objects in S3: their addresses over HTTP, and their signatures (AWS Signature Version 4). */
import { createHash, createHmac, type Hash, type Hmac } from 'node:crypto';
import { badRemoteUrl } from '../errors.js';
import type { AuthorizedRequest } from '../http/index.js';
import type { S3Rule } from './credential-rules.js';

/** Region in which most archives keep their scenes. The answer for a bucket in another region names it. */
const DEFAULT_REGION = 'us-west-2';
/** SHA-256 of an empty body. */
const EMPTY_SHA256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

interface AwsKeys {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string;
}

/** Invariant: a request is signed with the keys of the first rule that names its bucket. */
export class S3Requests {
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
