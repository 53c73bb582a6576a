/**
 * Validates answers of etcd's JSON gateway (proto3 JSON: 64-bit numbers are strings, bytes are base64, and fields with their default value,
 * such as `false` or an empty list, are missing). An answer of another shape comes from something in between, such as a proxy, and says
 * nothing about what etcd has done. All functions throw an Error that quotes the answer.
 */

export interface EtcdKeyValue {
  key: string;
  value?: string;
  create_revision: string;
  mod_revision: string;
  lease?: string;
}

interface EtcdRange {
  kvs: EtcdKeyValue[];
  more: boolean;
  count: number;
}

/** The operations of a transaction, as the gateway accepts them. */
export type EtcdOperation =
  | { request_put: object }
  | { request_delete_range: object }
  | { request_range: object };

export interface EtcdTransactionResult {
  revision: number;
  succeeded: boolean;
  /** One element for each operation of the executed branch; undefined for every operation except `request_range`. */
  ranges: (EtcdRange | undefined)[];
}

type Fields = Record<string, unknown>;

const MAX_QUOTED_CHARACTERS = 200;

function requireShape(isRight: boolean, answer: unknown): asserts isRight {
  if (!isRight)
    throw new Error(`not an answer of etcd: ${JSON.stringify(answer)?.slice(0, MAX_QUOTED_CHARACTERS)}`);
}

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isNumber = (value: unknown): value is string => typeof value === 'string' && /^\d+$/.test(value);
const isOptionalString = (value: unknown) => value === undefined || typeof value === 'string';
const isOptionalFlag = (value: unknown) => value === undefined || typeof value === 'boolean';

/** Parses an answer with a header; `revision` is the revision of the store. */
export function parseHeader(answer: unknown): { revision: number; fields: Fields } {
  requireShape(isFields(answer) && isFields(answer.header) && isNumber(answer.header.revision), answer);
  return { revision: Number((answer.header as Fields).revision), fields: answer };
}

/** Parses the result of a range request, on its own or in a transaction. */
export function parseRange(value: unknown): EtcdRange {
  requireShape(isFields(value), value);
  const { kvs = [], more = false, count = '0' } = value;
  requireShape(Array.isArray(kvs) && kvs.every(isKeyValue) && isOptionalFlag(more) && isNumber(count), value);
  return { kvs, more: more as boolean, count: Number(count) };
}

function isKeyValue(value: unknown): value is EtcdKeyValue {
  return (
    isFields(value) &&
    typeof value.key === 'string' &&
    isOptionalString(value.value) &&
    isNumber(value.create_revision) &&
    isNumber(value.mod_revision) &&
    (value.lease === undefined || isNumber(value.lease))
  );
}

/**
 * Parses the result of a transaction. etcd omits `succeeded` if it is false, and a truncated answer may lack it as well. The responses
 * distinguish the two: they must be those of the branch that the answer names. So `failure` must not be empty if the transaction
 * compares; without `failure`, the transaction must have succeeded.
 */
export function parseTransactionResult(
  answer: unknown,
  success: EtcdOperation[],
  failure: EtcdOperation[],
): EtcdTransactionResult {
  const { revision, fields } = parseHeader(answer);
  const { succeeded = false, responses = [] } = fields;
  requireShape(typeof succeeded === 'boolean' && Array.isArray(responses), answer);
  const operations = succeeded ? success : failure;
  requireShape(responses.length === operations.length && (succeeded || failure.length > 0), answer);
  const ranges = operations.map((operation, i) => {
    const [kind] = Object.keys(operation) as [string];
    const response: unknown = responses[i];
    const result = isFields(response) ? response[kind.replace('request', 'response')] : undefined;
    requireShape(isFields(result), answer);
    return kind === 'request_range' ? parseRange(result) : undefined;
  });
  return { revision, succeeded, ranges };
}

/** Parses the id of a granted lease. */
export function parseLeaseId(answer: unknown): string {
  const { ID } = parseHeader(answer).fields;
  requireShape(isNumber(ID), answer);
  return ID;
}

/** Parses the remaining seconds of `lease`; 0 if etcd does not know it. */
export function parseRemainingTtl(answer: unknown, lease: string): number {
  requireShape(isFields(answer), answer);
  const { ID, TTL = '0' } = parseHeader(answer.result).fields;
  // A truncated answer without a TTL must not end the lease, so the id is required.
  requireShape(ID === lease && (isNumber(TTL) || TTL === '-1'), answer);
  return Number(TTL);
}

/** Parses the token of an authenticated user. */
export function parseToken(answer: unknown): string {
  requireShape(isFields(answer) && typeof answer.token === 'string', 'an answer without a token');
  return answer.token as string;
}
