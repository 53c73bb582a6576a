/**
 * Which hosts may be fetched from. A host is named as `host`, `host:port` or `*.domain`. A named host may have a private address and answer
 * without TLS, because the operator knows it; a wildcard allows neither, as somebody else can own a name below the domain.
 */

import { lookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { addressNotAllowed, badRemoteUrl, hostNotAllowed } from '../errors.js';
import { isPublicAddress, literalAddress } from './address-guard.js';

export interface HostPolicy {
  /** Hosts that the operator names. */
  hosts: readonly string[];
  /** True if all other hosts with public addresses are allowed, too: for a user who runs tilewright on their own machine. */
  anyPublic: boolean;
}

export const NO_HOSTS: HostPolicy = { hosts: [], anyPublic: false };

const DEFAULT_PORTS: Record<string, string> = { 'https:': '443', 'http:': '80' };

/** An address that may be fetched. */
export interface AllowedUrl {
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
