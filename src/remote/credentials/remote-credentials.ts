/** Adds the credentials of the operator to requests. */
import type { IncomingHttpHeaders } from 'node:http';
import {
  type AuthorizedRequest,
  type HostPolicy,
  HttpClient,
  matchesHost,
  type RequestCredentials,
} from '../http/index.js';
import type { CredentialRules, SasRule } from './credential-rules.js';
import { S3Requests } from './s3-requests.js';
import { SasTokens } from './sas-tokens.js';

const REFUSED = [401, 403];

/** Invariant: a credential is added only to requests for the hosts and buckets of its rule; each redirect is checked again. */
export class RemoteCredentials implements RequestCredentials {
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
    return sas !== undefined && REFUSED.includes(status) && this.tokens.forget(url, sas.tokenUrl);
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
