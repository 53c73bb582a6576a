/** Documents of subscriptions. */
import { JOB_STATES } from './job-schemas.js';
import { count, links, listOf, object, oneOf, orNull, ref, text, time } from './schema-builders.js';

export const subscriptionSchemas = {
  Subscription: object({
    id: text,
    state: oneOf('active', 'paused'),
    every: text,
    /** The inputs of the jobs. */
    inputs: { type: 'object' },
    created: time,
    /** Null while the subscription is paused. */
    nextRun: orNull(time),
    'lastSuccess?': time,
    'lastRound?': object({
      'job?': text,
      status: oneOf(...JOB_STATES),
      started: time,
      'finished?': time,
      'result?': object({ ingested: count, unchanged: count, failed: count, tiles: count }),
      'error?': object({ code: text, message: text }),
    }),
    ...links,
  }),
  Subscriptions: object({ subscriptions: listOf(ref('Subscription')), ...links }),
};
