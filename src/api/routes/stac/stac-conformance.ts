/** The conformance classes of this API. */

const stac = (path: string, version = 'v1.0.0') => `https://api.stacspec.org/${version}/${path}`;
const features = (part: number, name: string) =>
  `http://www.opengis.net/spec/ogcapi-features-${part}/1.0/conf/${name}`;
const cql2 = (name: string) => `http://www.opengis.net/spec/cql2/1.0/conf/${name}`;
const processes = (name: string) => `http://www.opengis.net/spec/ogcapi-processes-1/1.0/conf/${name}`;

export const conformsTo = [
  stac('core'),
  stac('collections'),
  stac('ogcapi-features'),
  stac('item-search'),
  // Each extension has the version of its own specification.
  stac('item-search#filter', 'v1.0.0-rc.3'),
  ...['item-search#sort', 'item-search#fields', 'item-search#query'].map((path) => stac(path)),
  ...['ogcapi-features#sort', 'ogcapi-features#fields', 'ogcapi-features#query'].map((path) => stac(path)),
  ...['aggregation', 'aggregation#query', 'aggregation#filter'].map((path) => stac(path, 'v0.3.0')),
  ...['core', 'oas30', 'geojson'].map((name) => features(1, name)),
  ...['filter', 'features-filter', 'queryables'].map((name) => features(3, name)),
  ...['cql2-text', 'cql2-json', 'basic-cql2', 'advanced-comparison-operators'].map(cql2),
  ...['basic-spatial-functions', 'basic-spatial-functions-plus', 'spatial-functions'].map(cql2),
  ...['temporal-functions', 'case-insensitive-comparison', 'accent-insensitive-comparison', 'arithmetic'].map(
    cql2,
  ),
  ...['core', 'json', 'job-list', 'dismiss'].map(processes),
];
