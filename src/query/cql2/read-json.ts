/** CQL2 JSON (OGC 21-065r2, section 8) to the tree of filters. CQL2 text comes this way too. */
import { badCql2, badFilterLanguage, filterTooComplex, unsupportedCql2 } from '../errors.js';
import { all, any, type ComparisonOp, type Filter, MAX_DEPTH } from '../filter/filter.js';
import {
  kindOf,
  type NumberProperty,
  type PropertyName,
  propertyNamed,
  type TextProperty,
  type TimeProperty,
} from '../filter/properties.js';
import { type TemporalOp, temporalConverse } from '../filter/temporal.js';
import { type SpatialOp, spatialConverse } from '../geometry/spatial.js';
import { parseCql2Text } from './parse-text.js';
import { instantOf, isObject, numberOf, periodOf, shapeOf, textOf } from './read-literals.js';

const MIRRORED: Record<ComparisonOp, ComparisonOp> = {
  '=': '=',
  '<>': '<>',
  '<': '>',
  '<=': '>=',
  '>': '<',
  '>=': '<=',
};

/** Names of operators, which are read in whatever case. */
const OPERATORS = new Map(
  ['and', 'or', 'not', 'between', 'in', 'like', 'isNull', 'casei', 'accenti']
    .concat(Object.keys(MIRRORED), Object.keys(spatialConverse), Object.keys(temporalConverse))
    .map((op) => [op.toLowerCase(), op]),
);

/** Throws TW_QUERY_CQL2_SYNTAX and what `readCql2Json` throws. */
export function readCql2Text(source: string): Filter {
  const { json, positions } = parseCql2Text(source);
  return new Reader((node) => {
    const position = positions.get(node);
    return position === undefined ? '' : `at character ${position}`;
  }).filter(json, '', 0);
}

/** Throws TW_QUERY_CQL2, _CQL2_UNSUPPORTED, _UNKNOWN_PROPERTY, _NOT_QUERYABLE, _GEOMETRY, _DATETIME, _TOO_COMPLEX. */
export function readCql2Json(json: unknown): Filter {
  return new Reader((_, path) => (path === '' ? '' : `at ${path}`)).filter(json, '', 0);
}

/**
 * A filter as a parameter: an object is JSON; a text is CQL2 text unless `language` says that it is JSON. Throws what the
 * readers above throw, and TW_QUERY_FILTER_LANG.
 */
export function readCql2(filter: unknown, language?: string): Filter {
  if (language !== undefined && language !== 'cql2-text' && language !== 'cql2-json')
    throw badFilterLanguage('filter-lang', language, 'cql2-text or cql2-json');
  if (typeof filter !== 'string') {
    if (language === 'cql2-text') throw badCql2('', 'filter-lang is cql2-text, but the filter is no text');
    return readCql2Json(filter);
  }
  if (language !== 'cql2-json') return readCql2Text(filter);
  try {
    return readCql2Json(JSON.parse(filter));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw badCql2.because(error, '', `it is not JSON: ${error.message}`);
  }
}

/** `locate` describes the place of an object: its path, or where it stands in a text. */
class Reader {
  constructor(private readonly locate: (node: object, path: string) => string) {}

  filter(node: unknown, path: string, depth: number): Filter {
    if (depth > MAX_DEPTH) throw filterTooComplex('levels of operators', depth, MAX_DEPTH);
    if (node === true) return all([]);
    if (node === false) return any([]);
    if (!isObject(node)) throw badCql2(path && `at ${path}`, 'here stands no condition');
    const where = this.locate(node, path);
    const { op: name, args } = node;
    const op = typeof name === 'string' ? OPERATORS.get(name.toLowerCase()) : undefined;
    if (typeof name !== 'string')
      throw badCql2(where, 'a condition is an object with the members "op" and "args"');
    if (op === undefined) throw unsupportedCql2(where, `the operator or function "${name}"`);
    if (!Array.isArray(args)) throw badCql2(where, `"args" of "${op}" is no list`);
    const at = `${path && `${path}.`}args`;
    switch (op) {
      case 'and':
      case 'or': {
        if (args.length === 0) throw badCql2(where, `"${op}" has no arguments`);
        const parts = args.map((arg, i) => this.filter(arg, `${at}[${i}]`, depth + 1));
        return op === 'and' ? all(parts) : any(parts);
      }
      case 'not':
        this.count(args, 1, op, where);
        return { op, arg: this.filter(args[0], `${at}[0]`, depth + 1) };
      case 'isNull':
        this.count(args, 1, op, where);
        return { op, property: this.property(args[0], `${at}[0]`, where) };
      case 'between':
        return this.between(args, at, where);
      case 'in':
        return this.membership(args, at, where);
      case 'like':
        return this.like(args, at, where);
    }
    this.count(args, 2, op, where);
    if (op in spatialConverse) return this.spatial(op as SpatialOp, args, at, where);
    if (op in temporalConverse) return this.temporal(op as TemporalOp, args, at, where);
    if (!(op in MIRRORED)) throw unsupportedCql2(where, `the function "${op}"`);
    const [property, literal, swapped] = this.propertyAndLiteral(args, at, where);
    const comparison = op as ComparisonOp;
    return this.compare(swapped ? MIRRORED[comparison] : comparison, property, literal, where);
  }

  private compare(op: ComparisonOp, property: PropertyName, literal: unknown, where: string): Filter {
    switch (kindOf(property)) {
      case 'text':
        return { op, property: property as TextProperty, value: textOf(literal, property, where) };
      case 'number':
        return { op, property: property as NumberProperty, value: numberOf(literal, property, where) };
      case 'time':
        return { op, property: property as TimeProperty, period: instantOf(literal, property, where) };
      case 'geometry':
        throw badCql2(where, 'geometry is not compared: use S_INTERSECTS or another spatial function');
    }
  }

  private between(given: unknown[], at: string, where: string): Filter {
    // Drafts of CQL2 had both bounds in one list.
    const args = given.length === 2 && Array.isArray(given[1]) ? [given[0], ...given[1]] : given;
    this.count(args, 3, 'between', where);
    const property = this.property(args[0], `${at}[0]`, where);
    return all([this.compare('>=', property, args[1], where), this.compare('<=', property, args[2], where)]);
  }

  private membership(args: unknown[], at: string, where: string): Filter {
    this.count(args, 2, 'in', where);
    const property = this.property(args[0], `${at}[0]`, where);
    const values = args[1];
    if (!Array.isArray(values) || values.length === 0)
      throw badCql2(where, '"in" takes a property and a list of values');
    switch (kindOf(property)) {
      case 'text':
        return {
          op: 'in',
          property: property as TextProperty,
          values: values.map((value) => textOf(value, property, where)),
        };
      case 'number':
        return {
          op: 'in',
          property: property as NumberProperty,
          values: values.map((value) => numberOf(value, property, where)),
        };
      default:
        return any(values.map((value) => this.compare('=', property, value, where)));
    }
  }

  private like(args: unknown[], at: string, where: string): Filter {
    this.count(args, 2, 'like', where);
    const property = this.property(args[0], `${at}[0]`, where);
    if (kindOf(property) !== 'text') throw badCql2(where, `${property} is no text, so it is like no pattern`);
    if (isObject(args[1])) throw unsupportedCql2(where, 'a function in a pattern');
    return { op: 'like', property: property as TextProperty, pattern: textOf(args[1], property, where) };
  }

  private spatial(op: SpatialOp, args: unknown[], at: string, where: string): Filter {
    const [property, literal, swapped] = this.propertyAndLiteral(args, at, where);
    if (property !== 'geometry')
      throw badCql2(where, `${property} is no geometry: use the property geometry`);
    return { op: swapped ? spatialConverse[op] : op, shape: shapeOf(literal, where) };
  }

  private temporal(op: TemporalOp, args: unknown[], at: string, where: string): Filter {
    const [property, literal, swapped] = this.propertyAndLiteral(args, at, where);
    if (kindOf(property) !== 'time') throw badCql2(where, `${property} is no time`);
    return {
      op: swapped ? temporalConverse[op] : op,
      property: property as TimeProperty,
      period: periodOf(literal, property, where),
    };
  }

  /** Two arguments in either order. */
  private propertyAndLiteral(
    args: unknown[],
    at: string,
    where: string,
  ): [property: PropertyName, literal: unknown, swapped: boolean] {
    const isProperty = args.map((arg) => isObject(arg) && 'property' in arg);
    if (isProperty[0] && isProperty[1]) throw unsupportedCql2(where, 'a comparison of two properties');
    const swapped = isProperty[1] === true;
    const place = swapped ? 1 : 0;
    return [this.property(args[place], `${at}[${place}]`, where), args[1 - place], swapped];
  }

  private property(node: unknown, path: string, where: string): PropertyName {
    if (isObject(node) && typeof node['op'] === 'string')
      throw unsupportedCql2(this.locate(node, path) || where, `the function "${node['op']}"`);
    if (!isObject(node) || typeof node['property'] !== 'string')
      throw badCql2(where, 'a condition needs a property, in JSON {"property": "eo:cloud_cover"}');
    return propertyNamed(node['property'], this.locate(node, path));
  }

  private count(args: unknown[], count: number, op: string, where: string): void {
    if (args.length !== count)
      throw badCql2(where, `"${op}" takes ${count} argument${count > 1 ? 's' : ''}, not ${args.length}`);
  }
}
