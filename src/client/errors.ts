import { defineError } from '../errors.js';

export const unreachable = defineError(
  'TW_CLIENT_UNREACHABLE',
  503,
  'No tilewright server answers at the address.',
  (url: string, reason: string) => `${url} does not answer (${reason}). Is the server running there?`,
);

export const badAnswer = defineError(
  'TW_CLIENT_BAD_ANSWER',
  502,
  'The server answered with something that is not of this API.',
  (path: string, status: number) =>
    `${path} was answered with ${status} and no tilewright document. Is it a tilewright server?`,
);
