/**
 * Subscriptions: list, create, change, remove, and start of a round. Imports files of a folder above (types), the folders `http`, `schemas`
 * and `routes/processes` and the parts `query`, `remote` and `subscriptions`.
 */
export { type SubscriptionDocument, subscriptionRoutes } from './subscription-routes.js';
