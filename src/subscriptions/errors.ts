/** Errors of subscriptions. */
import { defineError } from '../errors.js';

export const subscriptionNotFound = defineError(
  'TW_SUBSCRIPTION_NOT_FOUND',
  404,
  'No subscription has this id. `GET /subscriptions` lists the subscriptions.',
  (id: string) => `no subscription has the id ${JSON.stringify(id)}; "tilewright subscriptions" lists them`,
);

export const subscriptionExists = defineError(
  'TW_SUBSCRIPTION_EXISTS',
  409,
  'A subscription with this id exists. Without a name, the id follows from the search, so the same search has been subscribed to before. Remove that subscription, or give a name.',
  (id: string) => `the subscription ${id} exists already; remove it first, or give this one another --name`,
);

export const subscriptionLimit = defineError(
  'TW_SUBSCRIPTION_LIMIT',
  409,
  'The server has as many subscriptions as it allows. Remove some, or join their searches.',
  (limit: number) => `there are already ${limit} subscriptions; remove some, or join their searches`,
);

export const badInterval = defineError(
  'TW_SUBSCRIPTION_EVERY',
  400,
  'The time between two rounds of a subscription must be a number of minutes, hours or days, from `1m` to `30d`.',
  (every: string) =>
    `--every ${JSON.stringify(every.slice(0, 40))} is not a time from 1m to 30d, such as 30m, 6h or 1d`,
);

export const roundRunning = defineError(
  'TW_SUBSCRIPTION_RUNNING',
  409,
  'The last round of the subscription has not ended, so no other one starts. Follow its job, or cancel the job.',
  (id: string, job: string | undefined) =>
    job === undefined
      ? `a round of the subscription ${id} is just starting`
      : `the last round of the subscription ${id} still runs as job ${job}; wait for its end, or cancel it`,
);
