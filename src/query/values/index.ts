/**
 * Parses single values: numbers, bounding boxes, datetimes. Pure functions that name the parameter in their errors. May import
 * `grid` (types).
 */
export { axisOrderHint } from './axis-order-hint.js';
export { checkBbox, parseBbox } from './parse-bbox.js';
export { parseDatetime, parseInstant, writeDatetime } from './parse-datetime.js';
export { parseNumber } from './parse-number.js';
