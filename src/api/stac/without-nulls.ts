import type { FastifyRequest } from 'fastify';

/** Clients send null for what they do not ask for. Before the body is checked, such members go. */
export async function withoutNulls(request: FastifyRequest): Promise<void> {
  const { body } = request;
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return;
  request.body = Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null));
}
