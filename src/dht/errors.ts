import { defineError } from '../errors.js';

export const segmentDamaged = defineError(
  'TW_DHT_SEGMENT_DAMAGED',
  500,
  'A segment of the commit log in the shared store is damaged. Restore the object from a copy of the store.',
  (name: string, detail: string) => `segment ${name} of the commit log cannot be read: ${detail}`,
);
