/** Cookies of logins that redirect (such as NASA Earthdata Login), each for the host alone that has set it. */

/** More than logins need. Others are ignored, because a host chooses how many it sends. */
const MAX_COOKIES = 20;
const MAX_COOKIE_CHARS = 4096;

/** Invariant: the cookies of a host are only sent to the same origin. Attributes other than name and value are ignored. */
export class SessionCookies {
  private readonly origins = new Map<string, Map<string, string>>();

  /** Adds the cookies of an answer. An empty value deletes its cookie. */
  add({ origin }: URL, setCookie: readonly string[] = []): void {
    const cookies = this.origins.get(origin) ?? new Map<string, string>();
    for (const line of setCookie) {
      const [, name, value] = /^\s*([^=;\s]+)=([^;]*)/.exec(line.slice(0, MAX_COOKIE_CHARS)) ?? [];
      if (name === undefined || value === undefined) continue;
      if (value === '') cookies.delete(name);
      else if (cookies.has(name) || cookies.size < MAX_COOKIES) cookies.set(name, value.trim());
    }
    if (cookies.size > 0) this.origins.set(origin, cookies);
  }

  /** The header for a request; empty without cookies. */
  headersFor({ origin }: URL): { cookie?: string } {
    const cookies = this.origins.get(origin);
    if (!cookies || cookies.size === 0) return {};
    return { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') };
  }
}
