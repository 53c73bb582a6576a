/**
 * Options for a reverse proxy in front of the server: the address at which clients reach it, and the proxies whose `X-Forwarded-*` headers count.
 * Without these options no such header is read.
 */
import { isIP } from 'node:net';
import { badProxy, badPublicUrl, publicUrlWithoutToken } from './errors.js';

export interface ProxyOptions {
  /** Base of all links in answers, such as `https://example.org/tiles`. By default the host that the request names. */
  publicUrl?: string;
  /** Proxies whose `X-Forwarded-For`, `-Proto` and `-Host` count: IP addresses, CIDR ranges, or `loopback`. */
  trustProxy?: string[];
}

const LOOPBACK_HOST = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/i;

/** The URL without a slash at its end. Throws TW_API_PUBLIC_URL. */
function readPublicUrl(given: string): URL {
  const url = URL.canParse(given) ? new URL(given) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) throw badPublicUrl(given, 'it is not a URL of http or https');
  if (/[?#]/.test(given)) throw badPublicUrl(given, 'it has a query or a fragment');
  if (url.username || url.password) throw badPublicUrl(given, 'it contains a user or a password');
  return url;
}

/** True for what `trustProxy` of fastify accepts and that names addresses: no number of hops, no `true`. */
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
 * Checks the options of a server that clients reach with `token`; undefined if none is needed. Returns the base of links without a slash
 * at its end, and the proxies that are trusted. Throws TW_API_PUBLIC_URL, TW_API_OPEN_BIND, TW_API_TRUST_PROXY.
 */
export function readProxyOptions(
  { publicUrl, trustProxy = [] }: ProxyOptions,
  token: string | undefined,
): ProxyOptions {
  // Variables of the environment are often set and empty.
  const addresses = trustProxy.map((one) => one.trim()).filter((one) => one !== '');
  for (const given of addresses) if (!namesAddresses(given)) throw badProxy(given);
  const proxies = addresses.length > 0 ? { trustProxy: addresses } : {};
  if (publicUrl === undefined || publicUrl.trim() === '') return proxies;
  const url = readPublicUrl(publicUrl);
  if (!token && !LOOPBACK_HOST.test(url.hostname)) throw publicUrlWithoutToken(publicUrl);
  return { publicUrl: url.href.replace(/\/+$/, ''), ...proxies };
}
