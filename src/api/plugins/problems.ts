/** Answers every error, and every request without a route, as `application/problem+json` (RFC 9457) with a stable code. */

import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { excerpt, messageOf, TilewrightError } from '../../errors.js';
import { jobNotFound, jobNotReady } from '../../jobs/index.js';
import type { Fault } from '../../utils/json-schema.js';
import {
  badRequest,
  bodyTimedOut,
  bodyTooLarge,
  internal,
  methodNotAllowed,
  noHost,
  processNotFound,
  resourceNotFound,
  stopping,
} from '../errors.js';
import { REQUEST_ID_HEADER } from './headers.js';

interface Path {
  pattern: RegExp;
  methods: Set<string>;
}

/** Answers 405 with `Allow` if the path is known (RFC 9110, section 15.5.6), else 404. Call this before the routes are registered. */
function registerNotFound(server: FastifyInstance): void {
  const paths = new Map<string, Path>();
  server.addHook('onRoute', ({ url, method }) => {
    if (url.includes('*')) return;
    const path = paths.get(url) ?? { pattern: patternOf(url), methods: new Set(['OPTIONS']) };
    for (const name of [method].flat()) path.methods.add(name);
    paths.set(url, path);
  });
  const refuse = (request: FastifyRequest, reply: FastifyReply): never => {
    const [requestPath] = request.url.split('?');
    const methods = new Set<string>();
    for (const path of paths.values())
      if (path.pattern.test(requestPath)) for (const method of path.methods) methods.add(method);
    // The router refuses some addresses that the pattern of a route matches, such as an empty extension: the method is not at fault.
    if (methods.size === 0 || methods.has(request.method))
      throw resourceNotFound(`route ${request.method} ${requestPath}`);
    const allow = [...methods].sort().join(', ');
    reply.header('allow', allow);
    throw methodNotAllowed(request.method, requestPath, allow);
  };
  // This comes before fastify checks the body, which it requires for some methods.
  server.addHook('preParsing', async (request, reply) => {
    if (request.is404) refuse(request, reply);
  });
  server.setNotFoundHandler(refuse);
}

/** `/tiles/:itemId/:group.tif` as a regular expression. */
function patternOf(url: string): RegExp {
  const parts = url.split(/:\w+/).map((text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('[^/]+')}/?$`);
}

export const PROBLEM_TYPE = 'application/problem+json';

/** Limit of JSON bodies; files have their own limit. */
export const MAX_BODY_BYTES = 1 << 20;

function problemOf(error: unknown, request: FastifyRequest): TilewrightError {
  if (error instanceof TilewrightError) return error;
  // Fastify's own errors: validation, unknown media types, bad addresses. Their messages name the field.
  const { statusCode, code } = error as { statusCode?: number; code?: string };
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE')
    return bodyTooLarge(request.routeOptions?.bodyLimit ?? MAX_BODY_BYTES, 'JSON');
  if (!statusCode || statusCode >= 500) return internal.because(error);
  return new TilewrightError(badRequest.code, statusCode, badRequest(reasonOf(error, request)).message);
}

/** The reason in words. For an unsupported Content-Type, it lists the accepted ones; for a validation error, it explains each fault. */
function reasonOf(error: unknown, { headers, server }: FastifyRequest): string {
  const { code, validation, validationContext = 'body' } = error as Partial<FastifyError>;
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') {
    const accepted = ['application/json', 'application/octet-stream'].filter((type) =>
      server.hasContentTypeParser(type),
    );
    const given = headers['content-type'];
    const what =
      given === undefined ? 'it has no Content-Type' : `the Content-Type ${excerpt(given)} is not accepted`;
    return `${what}: send ${accepted.join(' or ')}`;
  }
  if (!validation?.length) return messageOf(error);
  return faultTexts(validation as Fault[], validationContext);
}

/** Ajv reports a value that matches no schema of an `anyOf` as a fault for each schema, and a last one for the `anyOf`. */
function faultTexts(faults: Fault[], context: string): string {
  const texts = faults.map((fault) => faultText(fault, context));
  if (faults.length < 2 || faults.at(-1)!.keyword !== 'anyOf') return texts.join(', ');
  const [first, ...others] = new Set(texts.slice(0, -1));
  const start = `${nameOf(faults[0]!, context)} must `;
  return [first, ...others.map((text) => (text.startsWith(start) ? text.slice(start.length) : text))].join(
    ' or ',
  );
}

const COMPARISONS: Record<string, string> = {
  '<=': 'at most',
  '>=': 'at least',
  '<': 'less than',
  '>': 'more than',
};

/** The name of a field on the command line, which has flags for the inputs of a process and no body. */
function nameOf({ instancePath }: Fault, context: string): string {
  const name = context === 'body' ? instancePath.replace(/^\/(inputs\/)?/, '') : '';
  return name || `${context}${instancePath}`;
}

function faultText(fault: Fault, context: string): string {
  const { keyword, instancePath, message, data, parentSchema } = fault;
  const params = fault.params as Record<string, unknown>;
  const where = nameOf(fault, context);
  if (keyword === 'additionalProperties') {
    const unknown = excerpt(params['additionalProperty']);
    if (context === 'body' && instancePath === '/inputs') {
      const known = Object.keys(parentSchema?.properties ?? {});
      return `the process has no input ${unknown}; it has ${known.length > 0 ? known.join(', ') : 'none'}`;
    }
    if (context === 'body' && instancePath !== '')
      return `${where} has no member ${unknown}; it has ${Object.keys(parentSchema?.properties ?? {}).join(', ')}`;
    return `${context === 'querystring' ? 'the query' : `the ${context}`} has the unknown parameter ${unknown}`;
  }
  if (keyword === 'pattern' && parentSchema?.description)
    return `${where} ${excerpt(data)} is not allowed: ${parentSchema.description}`;
  if (keyword === 'enum') {
    const allowed = [params['allowedValues']].flat();
    return `${where} must be ${allowed.length > 1 ? 'equal to one of ' : ''}${allowed.join(', ')}`;
  }
  const comparison = COMPARISONS[String(params['comparison'])];
  return comparison ? `${where} must be ${comparison} ${params['limit']}` : `${where} ${message}`;
}

/** Problem types that a standard defines. */
const OGC_EXCEPTIONS = 'http://www.opengis.net/def/exceptions/ogcapi-processes-1/1.0';
const STANDARD_TYPES = new Map([
  [processNotFound.code, `${OGC_EXCEPTIONS}/no-such-process`],
  [jobNotFound.code, `${OGC_EXCEPTIONS}/no-such-job`],
  [jobNotReady.code, `${OGC_EXCEPTIONS}/result-not-ready`],
]);

export function problemDocument(
  { code, status, message }: TilewrightError,
  requestId: string,
  instance?: string,
) {
  const type = STANDARD_TYPES.get(code) ?? 'about:blank';
  return { type, title: code, status, code, detail: message, instance, requestId };
}

/** Default Retry-After for clients that exceeded a limit or met a full queue. */
const RETRY_AFTER_SECONDS = 10;

function sendProblem(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const problem = problemOf(error, request);
  if (problem.status >= 500) request.log.error({ err: error }, problem.message);
  else request.log.info({ code: problem.code }, problem.message);
  if (problem.status === 429 && !reply.hasHeader('retry-after'))
    reply.header('retry-after', RETRY_AFTER_SECONDS);
  // A handler may have set the headers of the answer that failed.
  reply.removeHeader('etag').removeHeader('accept-ranges').header('cache-control', 'no-store');
  // The error may have occurred before the hook that sets this header.
  reply.header(REQUEST_ID_HEADER, request.id);
  return reply
    .code(problem.status)
    .type(PROBLEM_TYPE)
    .send(problemDocument(problem, request.id, request.url));
}

/** For `Fastify(options)`: handlers of errors that occur before a request is routed. */
export const earlyErrorOptions = {
  frameworkErrors: (error: FastifyError, request: FastifyRequest, reply: FastifyReply) => {
    sendProblem(error, request, reply);
  },
  /** For malformed HTTP and timeouts, where there is no request, only a socket. */
  clientErrorHandler: (error: NodeJS.ErrnoException, socket: Socket) => {
    if (error.code === 'ECONNRESET' || socket.destroyed) return;
    const problem = malformed(error.code);
    const id = randomUUID();
    const body = JSON.stringify(problemDocument(problem, id));
    const head = `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\ncontent-type: ${PROBLEM_TYPE}\r\n${REQUEST_ID_HEADER}: ${id}\r\n`;
    const end = `content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`;
    if (socket.writable) socket.end(head + end);
    socket.destroySoon();
  },
};

function malformed(code = ''): TilewrightError {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return bodyTimedOut();
  if (code !== 'HPE_HEADER_OVERFLOW') return badRequest('it is not well-formed HTTP');
  return new TilewrightError(badRequest.code, 431, badRequest('its headers are too long').message);
}

export function registerErrorHandler(server: FastifyInstance): void {
  server.setErrorHandler(sendProblem);
  registerNotFound(server);
  // Requests may arrive on open connections while the server stops.
  let closing = false;
  server.addHook('preClose', async () => {
    closing = true;
  });
  server.addHook('onRequest', async ({ headers, raw }) => {
    if (closing) throw stopping();
    if (headers.host === undefined && raw.httpVersion === '1.1') throw noHost();
  });
}
