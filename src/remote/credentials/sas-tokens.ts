/** Tokens of services that sign addresses of Azure's object store, as that of Planetary Computer does. */
import { parseJson } from '../../utils/json-text.js';
import { badCredentials } from '../errors.js';
import { type HttpClient, withoutSecrets } from '../http/index.js';

/** A token is replaced this long before it expires, so that it is valid when a request arrives; a short one after half of its time. */
const MARGIN_MS = 300_000;
const MAX_ANSWER_BYTES = 100_000;
/** Tokens without an expiry are used this long. */
const DEFAULT_LIFETIME_MS = 1_800_000;
const NOT_FOUND = 404;

interface Token {
  /** The query of a signed address; empty if the service does not sign this container. */
  query: string;
  /** Time from which a new token is requested; ms since 1970. */
  renewAt: number;
}

/** Invariant: at most one request for the token of a container is in progress. */
export class SasTokens {
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
    if (status === NOT_FOUND) return { query: '', renewAt: Date.now() + DEFAULT_LIFETIME_MS };
    let answer: { token?: unknown; 'msft:expiry'?: unknown };
    try {
      answer = parseJson(body.toString('utf8')) as typeof answer;
    } catch (error) {
      throw badCredentials.because(error, withoutSecrets(address), 'its answer is not JSON');
    }
    if (typeof answer?.token !== 'string')
      throw badCredentials(withoutSecrets(address), 'its answer holds no token');
    const expires = Date.parse(String(answer['msft:expiry']));
    const lifetime = Number.isNaN(expires) ? DEFAULT_LIFETIME_MS : Math.max(0, expires - Date.now());
    return {
      query: answer.token.replace(/^\?/, ''),
      renewAt: Date.now() + Math.max(lifetime - MARGIN_MS, lifetime / 2),
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
