/** The members of an OGC execute request other than `inputs`: the wanted outputs, and the form of the results. */
import { randomUUID } from 'node:crypto';
import type { FastifyReply } from 'fastify';
import type { Process } from '../../../jobs/index.js';
import type { JobRecord } from '../../../storage/index.js';
import { documented } from '../../../utils/json-schema.js';
import { noCallbacks, outputNotFound } from '../../errors.js';
import { closedObject } from '../../schemas/index.js';

export interface ExecuteRequest {
  inputs?: unknown;
  outputs?: Record<string, object>;
  response?: 'document' | 'raw';
  subscriber?: unknown;
}

const JSON_TYPE = 'application/json';

/** No process has more outputs. */
const MAX_OUTPUTS = 100;

const output = closedObject({
  transmissionMode: { enum: ['value'] },
  format: closedObject({ mediaType: { enum: [JSON_TYPE] }, encoding: { enum: ['UTF-8'] } }),
});

/** JSON Schema of the body of an execute request. */
export function executeBody({ inputs, outputs = {} }: Process) {
  return closedObject(
    {
      inputs,
      outputs: documented(
        {
          type: 'object',
          maxProperties: MAX_OUTPUTS,
          additionalProperties: output,
          description: 'The outputs in the results. Default: all.',
        },
        {
          additionalProperties: false,
          properties: Object.fromEntries(Object.keys(outputs).map((name) => [name, output])),
        },
      ),
      response: {
        enum: ['document', 'raw'],
        description: 'Form of the results: one document (the default), or the outputs themselves.',
      },
      subscriber: documented(
        { description: 'Refused: the server sends no callbacks. Follow /jobs/ID/events.' },
        { not: {} },
      ),
    },
    { required: inputs.required || inputs.anyOf ? ['inputs'] : [] },
  );
}

/** The form of the job's results; undefined for a document with all outputs. Throws TW_API_NO_CALLBACKS, TW_API_NO_OUTPUT. */
export function wantedResultOptions(
  process: Process,
  request: ExecuteRequest | undefined,
): JobRecord['resultOptions'] {
  const { outputs = {}, response, subscriber } = request ?? {};
  if (subscriber !== undefined) throw noCallbacks();
  const names = Object.keys(outputs);
  const declared = process.outputs ?? {};
  for (const name of names)
    if (!Object.hasOwn(declared, name)) throw outputNotFound(process.id, name, Object.keys(declared));
  const isRaw = response === 'raw';
  if (names.length === 0 && !isRaw) return undefined;
  return { ...(names.length > 0 && { outputs: names }), ...(isRaw && { raw: true }) };
}

/** The wanted members of the results. */
function selected(results: unknown, names: string[] | undefined): unknown {
  if (names === undefined || typeof results !== 'object' || results === null) return results;
  return Object.fromEntries(Object.entries(results).filter(([name]) => names.includes(name)));
}

/**
 * Sends the results of a job in the form that its request asked for. Raw results are the value of a single output, or a multipart answer
 * with a part for each output (OGC 18-062r2, 7.13.2).
 */
export function sendResults(
  reply: FastifyReply,
  results: unknown,
  options: JobRecord['resultOptions'],
): unknown {
  const document = selected(results, options?.outputs);
  if (!options?.raw || typeof document !== 'object' || document === null) return document;
  const values = document as Record<string, unknown>;
  const outputs = (options.outputs ?? Object.keys(values)).map(
    (name) => [name, Object.hasOwn(values, name) ? values[name] : null] as const,
  );
  const [first, ...others] = outputs;
  if (first && others.length === 0) return reply.type(JSON_TYPE).send(JSON.stringify(first[1]));
  const boundary = randomUUID();
  const parts = outputs.map(
    ([name, value]) =>
      `--${boundary}\r\ncontent-type: ${JSON_TYPE}\r\ncontent-id: <${encodeURIComponent(name)}>\r\n\r\n${JSON.stringify(value)}\r\n`,
  );
  const type = `multipart/related; type="${JSON_TYPE}"; boundary=${boundary}`;
  return reply.type(type).send(Buffer.from(`${parts.join('')}--${boundary}--\r\n`));
}
