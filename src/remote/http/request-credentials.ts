/** Adds credentials to requests. */
import type { IncomingHttpHeaders } from 'node:http';

export interface AuthorizedRequest {
  /** Address over HTTP, which can hold a signature. */
  url: string;
  headers: Record<string, string>;
}

export interface RequestCredentials {
  /** Called before each attempt. `address`: over HTTP, or `s3://bucket/key`. */
  authorize(address: string, method: string, signal?: AbortSignal): Promise<AuthorizedRequest>;
  /** Called with each answer. Returns true if `authorize` would now result in another request, so that it is sent once more. */
  renew(address: string, answer: { status: number; headers: IncomingHttpHeaders }): boolean;
  close(): void;
}

/** For clients without credentials. */
export const NO_CREDENTIALS: RequestCredentials = {
  authorize: async (url) => ({ url, headers: {} }),
  renew: () => false,
  close: () => {},
};
