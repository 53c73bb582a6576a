/**
 * Errors with stable codes.
 *
 * Each part defines its errors in its own `errors.ts` with `defineError`. A message states what happened, to which input, and what to
 * do. docs/reference/errors.md is generated from `errorCatalogue()`.
 */
import { describeSystemError } from './utils/system-errors.js';
import { visibleText } from './utils/text.js';

/** An error that a user can act on. `status` is the HTTP status of the answer. */
export class TilewrightError extends Error {
  readonly code: string;
  readonly status: number;

  constructor(code: string, status: number, message: string, options?: ErrorOptions) {
    // A message often names what somebody else has sent.
    super(visibleText(message), options);
    this.name = 'TilewrightError';
    this.code = code;
    this.status = status;
  }
}

/** The form of an error in messages between nodes. */
export type ErrorDocument = Pick<TilewrightError, 'code' | 'status' | 'message'>;

/** JSON Schema of an `ErrorDocument`. Messages of other nodes must be checked, because their code and status are sent to clients. */
export const ERROR_DOCUMENT_SCHEMA = {
  type: 'object',
  required: ['code', 'status', 'message'],
  properties: {
    code: { type: 'string', pattern: '^TW_[A-Z0-9_]+$' },
    status: { type: 'integer', minimum: 400, maximum: 599 },
    message: { type: 'string' },
  },
} as const;

export const toErrorDocument = ({ code, status, message }: ErrorDocument): ErrorDocument => ({
  code,
  status,
  message,
});

export const fromErrorDocument = ({ code, status, message }: ErrorDocument) =>
  new TilewrightError(code, status, message);

/** Creates errors with one code from the arguments of the message. `because` also keeps the cause. */
export interface ErrorMaker<Args extends unknown[]> {
  (...args: Args): TilewrightError;
  because(cause: unknown, ...args: Args): TilewrightError;
  is(error: unknown): error is TilewrightError;
  readonly code: string;
  readonly status: number;
}

export interface ErrorDefinition {
  code: string;
  status: number;
  /** Text for docs/reference/errors.md: when this error occurs and what to do. */
  meaning: string;
}

const catalogue = new Map<string, ErrorDefinition>();

/** All errors that the modules loaded so far define, ordered by code. */
export function errorCatalogue(): ErrorDefinition[] {
  return [...catalogue.values()].sort((a, b) => (a.code < b.code ? -1 : 1));
}

export function defineError<Args extends unknown[]>(
  code: string,
  status: number,
  meaning: string,
  message: (...args: Args) => string,
): ErrorMaker<Args> {
  if (catalogue.has(code)) throw new Error(`error code ${code} is defined twice`);
  catalogue.set(code, { code, status, meaning });
  const make = (...args: Args) => new TilewrightError(code, status, message(...args));
  return Object.assign(make, {
    code,
    status,
    because: (cause: unknown, ...args: Args) =>
      new TilewrightError(code, status, message(...args), { cause }),
    is: (error: unknown): error is TilewrightError => error instanceof TilewrightError && error.code === code,
  });
}

/** The message of any thrown value, for errors of the system in words. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? (describeSystemError(error) ?? error.message) : String(error);
}

/** The JSON of a value for a message, shortened to 100 characters. */
export function excerpt(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > MAX_EXCERPT_LENGTH ? `${text.slice(0, MAX_EXCERPT_LENGTH)}...` : text;
}

const MAX_EXCERPT_LENGTH = 100;
