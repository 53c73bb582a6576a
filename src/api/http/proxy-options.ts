/**
 * Options for a reverse proxy in front of the server: the address at which clients reach it, and the proxies whose `X-Forwarded-*`
 * headers are trusted. Without these options these headers are ignored.
 */
import { isIP } from 'node:net';
import { badProxy, badPublicUrl, publicUrlWithoutToken } from '../errors.js';

export interface ProxyOptions {
  /** Base of all links in answers, such as `https://example.org/tiles`. Default: the host of the request. */
  publicUrl?: string;
  /** Proxies whose `X-Forwarded-For`, `-Proto` and `-Host` are trusted: IP addresses, CIDR ranges, or `loopback`. */
  trustProxy?: string[];
}

const LOOPBACK_HOST = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/i;

/** Throws TW_API_PUBLIC_URL. */
function readPublicUrl(given: string): URL {
  const url = URL.canParse(given) ? new URL(given) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) throw badPublicUrl(given, 'it is not an http or https URL');
  if (/[?#]/.test(given)) throw badPublicUrl(given, 'it has a query or a fragment');
  if (url.username || url.password) throw badPublicUrl(given, 'it contains a user or a password');
  return url;
}

/** Accepts those values of fastify's `trustProxy` that are addresses; not a number of hops or `true`. */
function namesAddresses(given: string): boolean {
  if (given === 'loopback') return true;
  const [address = '', bits, ...rest] = given.split('/');
  const version = isIP(address);
  if (version === 0 || rest.length > 0) return false;
  if (bits === undefined) return true;
  // fastify refuses 0 bits.
  return /^\d{1,3}$/.test(bits) && Number(bits) >= 1 && Number(bits) <= (version === 4 ? 32 : 128);
}

/**
 * Checks the options. `token` is undefined if clients need none. Returns the base of links without a trailing slash, and the trusted
 * proxies. Throws TW_API_PUBLIC_URL, TW_API_OPEN_PUBLIC_URL, TW_API_TRUST_PROXY.
 */
export function readProxyOptions(
  { publicUrl, trustProxy = [] }: ProxyOptions,
  token: string | undefined,
): ProxyOptions {
  // Environment variables are often set to an empty text.
  const addresses = trustProxy.map((one) => one.trim()).filter((one) => one !== '');
  for (const given of addresses) if (!namesAddresses(given)) throw badProxy(given);
  const proxies = addresses.length > 0 ? { trustProxy: addresses } : {};
  if (publicUrl === undefined || publicUrl.trim() === '') return proxies;
  const url = readPublicUrl(publicUrl);
  if (!token && !LOOPBACK_HOST.test(url.hostname)) throw publicUrlWithoutToken(publicUrl);
  return { publicUrl: url.href.replace(/\/+$/, ''), ...proxies };
}
