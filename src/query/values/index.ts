/**
 * Parses single values: numbers, bounding boxes, datetimes. Pure functions that name the parameter in their errors. May import
 * `grid` (types).
 */
export { axisOrderHint } from './axis-order-hint.js';
export { BBOX_PATTERN, BBOX_SIZES, checkBbox, parseBbox } from './parse-bbox-value.js';
export { DATETIME_PATTERNS, parseDatetime, parseInstant, writeDatetime } from './parse-datetime-value.js';
export { parseNumber } from './parse-number-value.js';
