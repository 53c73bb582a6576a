/**
 * Which hosts may be fetched from. A host is named as `host`, `host:port` or `*.domain`. A named host may have a private address and answer
 * without TLS, because the operator knows it; a wildcard allows neither, as somebody else can own a name below the domain. A host that does
 * not answer gets no requests for a while.
 */

import { lookup } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { addressNotAllowed, badRemoteUrl, hostDown, hostNotAllowed } from './errors.js';

/** Addresses that only a host named by the operator may have: loopback, private, link-local and reserved ones (RFC 6890). */
const NOT_PUBLIC = new BlockList();
for (const subnet of [
  '0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24',
  '192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4',
  // With the prefixes that carry an IPv4 address: NAT64, 6to4 and Teredo.
  '::/96 ::ffff:0:0:0/96 fec0::/10 64:ff9b::/96 64:ff9b:1::/48 100::/64 2001::/32 2001:db8::/32 2002::/16 fc00::/7 fe80::/10 ff00::/8',
].flatMap((line) => line.split(' '))) {
  const [address, bits] = subnet.split('/') as [string, string];
  NOT_PUBLIC.addSubnet(address, Number(bits), isIP(address) === 6 ? 'ipv6' : 'ipv4');
}

/** True for an address that anybody can reach. IPv4 addresses in IPv6 form (::ffff:0:0/96) count as IPv4. */
export function isPublicAddress(address: string): boolean {
  const kind = isIP(address);
  return kind !== 0 && !NOT_PUBLIC.check(address, kind === 6 ? 'ipv6' : 'ipv4');
}

/** The address of a URL whose host is a number, without brackets; undefined for a name. */
function literalAddress({ hostname }: URL): string | undefined {
  const text = hostname.replace(/^\[|\]$/g, '');
  return isIP(text) === 0 ? undefined : text;
}

export interface HostPolicy {
  /** Hosts that the operator names. */
  hosts: readonly string[];
  /** True if all other hosts with public addresses are allowed, too: for a user who runs tilewright on their own machine. */
  anyPublic: boolean;
}

export const NO_HOSTS: HostPolicy = { hosts: [], anyPublic: false };

const DEFAULT_PORTS: Record<string, string> = { 'https:': '443', 'http:': '80' };

/** An address that may be fetched. */
interface AllowedUrl {
  url: URL;
  /** True if its host may have any address. */
  isNamed: boolean;
}

/** Checks an address before it is fetched. Throws TW_REMOTE_BAD_URL, _HOST_NOT_ALLOWED and _ADDRESS_NOT_ALLOWED. */
export function checkUrl(text: string, { hosts, anyPublic }: HostPolicy): AllowedUrl {
  const url = parseUrl(text);
  const isNamed = hosts.some((host) => isHost(host, url));
  if (!isNamed && !anyPublic && !hosts.some((host) => isBelow(host, url))) throw hostNotAllowed(hostOf(url));
  if (url.protocol === 'http:' && !isNamed)
    throw badRemoteUrl(
      withoutSecrets(url),
      `it is not encrypted; name its host with --allow-host ${hostOf(url)}`,
    );
  const address = literalAddress(url);
  // Names are checked when they are resolved.
  if (address !== undefined && !isNamed && !isPublicAddress(address))
    throw addressNotAllowed(hostOf(url), address);
  return { url, isNamed };
}

/** Longer addresses are refused. Those with signatures have up to 2,000 characters. */
export const MAX_URL_CHARS = 8000;

function parseUrl(text: string): URL {
  if (text.length > MAX_URL_CHARS)
    throw badRemoteUrl(withoutSecrets(text.slice(0, 200)), `it has more than ${MAX_URL_CHARS} characters`);
  if (!URL.canParse(text)) throw badRemoteUrl(text.slice(0, 200), 'it is not a URL');
  const url = new URL(text);
  if (!Object.hasOwn(DEFAULT_PORTS, url.protocol))
    throw badRemoteUrl(withoutSecrets(url), 'its scheme is not https');
  if (url.username !== '' || url.password !== '')
    throw badRemoteUrl(
      withoutSecrets(url),
      'it holds a user name or password; put them into the file of credentials',
    );
  return url;
}

/** Resolves names of hosts that are not named, and fails with TW_REMOTE_ADDRESS_NOT_ALLOWED if one of their addresses is not public. */
export const publicLookup: LookupFunction = (host, options, done) => {
  lookup(host, { ...options, all: true }, (error, addresses) => {
    if (error) return done(error, '');
    const refused = addresses.find(({ address }) => !isPublicAddress(address));
    if (refused) return done(addressNotAllowed(host, refused.address), '');
    if (options.all) return done(null, addresses);
    const [first] = addresses;
    return done(null, first!.address, first!.family);
  });
};

const portOf = ({ port, protocol }: URL) => port || DEFAULT_PORTS[protocol]!;

const hostOf = (url: URL) => (url.port === '' ? url.hostname : `${url.hostname}:${url.port}`);

/** True if the host of an address is `host`, `host:port` or below `*.domain`. */
export const matchesHost = (pattern: string, url: URL): boolean =>
  isHost(pattern, url) || isBelow(pattern, url);

function isHost(pattern: string, url: URL): boolean {
  if (pattern.startsWith('*.')) return false;
  if (!URL.canParse(`http://${pattern}`)) return false;
  const named = new URL(`http://${pattern}`);
  const isDefault = !/:\d+$/.test(pattern);
  if (named.hostname !== url.hostname) return false;
  return isDefault ? portOf(url) === DEFAULT_PORTS[url.protocol] : portOf(url) === (named.port || '80');
}

function isBelow(pattern: string, url: URL): boolean {
  return pattern.startsWith('*.') && url.port === '' && url.hostname.endsWith(pattern.slice(1).toLowerCase());
}

/** Parameters of signatures (Azure SAS, AWS Signature 4, Google, CloudFront). They change while the file stays the same. */
const SIGNATURE_PARAMETER =
  /^(sig|se|sp|sv|sr|st|ske|sks|skt|skoid|sktid|skv|x-(amz|goog)-.*|awsaccesskeyid|signature|expires|key-pair-id|policy)$/i;
/** Parameters that look like credentials. */
const SECRET_PARAMETER = /key|token|secret|passw|sig|auth|jwt|policy|credential|code/i;

/** An address for messages and records: without user, password, signatures, tokens and fragment. */
export function withoutSecrets(given: URL | string): string {
  if (!URL.canParse(String(given)))
    return String(given)
      .replace(/[?#@].*/s, '')
      .slice(0, 200);
  const url = new URL(given);
  url.username = '';
  url.password = '';
  url.hash = '';
  for (const name of [...url.searchParams.keys()])
    if (SIGNATURE_PARAMETER.test(name) || SECRET_PARAMETER.test(name)) url.searchParams.delete(name);
  return url.href;
}

/** An address that identifies a file, for digests: without signatures. It can hold secrets. */
export function withoutSignature(given: string): string {
  const url = new URL(given);
  for (const name of [...url.searchParams.keys()])
    if (SIGNATURE_PARAMETER.test(name)) url.searchParams.delete(name);
  return url.href;
}

/** Requests in a row that fail after all their attempts. */
const MAX_FAILURES = 3;
const PAUSE_MS = 60_000;

/**
 * Decides how requests deal with a host that does not answer. A host that has answered before may be restarting: its requests wait once for
 * a minute and are then tried again. A host that never answered, or does not after the wait, gets no requests for a minute after a few
 * failures, so that a job with thousands of its files does not wait for each of them. An answer with an error shows that the host works.
 */
export class HostBreaker {
  private failures = 0;
  private hasAnswered = false;
  /** End of the wait of this outage; undefined before it. */
  private waitsUntil: number | undefined;
  private pausedUntil = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly pauseMs = PAUSE_MS,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** Throws TW_REMOTE_HOST_DOWN while requests are stopped. After the pause, one more failure stops them again. */
  check(url: string, host: string): void {
    if (this.now() < this.pausedUntil) throw hostDown(url, host, MAX_FAILURES, this.pauseMs / 1000);
  }

  /** To be called if no attempt of a request was answered. Returns how long the request should wait before it is tried again, ms. */
  failed(): number | undefined {
    const now = this.now();
    if (this.hasAnswered) {
      this.waitsUntil ??= now + this.pauseMs;
      if (now < this.waitsUntil) return this.waitsUntil - now;
    }
    this.failures++;
    if (this.failures >= MAX_FAILURES) this.pausedUntil = now + this.pauseMs;
    return undefined;
  }

  answered(): void {
    this.failures = 0;
    this.hasAnswered = true;
    this.waitsUntil = undefined;
    this.pausedUntil = Number.NEGATIVE_INFINITY;
  }
}
