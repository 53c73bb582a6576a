/** The parts that mutation tests change, and for each part the fast test files that cover it. `mutate` are paths below `dist`. */
export interface Part {
  mutate: string[];
  tests: string[];
  /** Words of the names of tests that do not run: code that counts its coverage is up to a thousand times slower in loops over pixels. */
  leaveOut?: string[];
}

const SLOW_SEARCHES = [
  'a search by ids',
  'pages give every tile',
  'searches of several indexes',
  'takes too long',
];

export const PARTS: Record<string, Part> = {
  grid: {
    mutate: ['src/grid/!(errors|index).js'],
    tests: [
      'grid/grid-axis',
      'grid/grid-ellipsoid',
      'grid/grid',
      'grid/grid-cell-pixels',
      'grid/pixel-sizes',
      'grid/region-coverer',
    ],
  },
  cql2: {
    mutate: ['src/query/cql2/*.js'],
    tests: [
      'query/parse-filter',
      'query/check-remote-filter',
      'query/filter-temporal-relations',
      'query/expressions',
      'query/filter-parts',
      'query/cql2',
      'query/cql2-errors',
      'query/query-extension',
      'query/cql2-limits',
      'query/cql2-messages',
    ],
    leaveOut: ['CASEI equals the full', 'for every character', 'too deep, too long'],
  },
  filter: {
    mutate: ['src/query/{filter,operators,compile,columns,plan}.js'],
    tests: [
      'query/filter-temporal-relations',
      'query/parse-filter',
      'query/check-remote-filter',
      'query/expressions',
      'query/cql2',
      'query/cql2-errors',
      'query/query-extension',
      'query/filter-parts',
      'query/plan-bounds',
      'query/cql2-limits',
      'query/search',
    ],
    leaveOut: ['CASEI equals the full', 'for every character', 'too deep, too long', ...SLOW_SEARCHES],
  },
  query: {
    mutate: ['src/query/{values,parameters,geometry,stac/extents}.js'],
    tests: [
      'query/filter-temporal-relations',
      'query/parse-filter',
      'query/check-remote-filter',
      'query/sortby-paging-token',
      'query/stac-document-extents',
      'query/cql2',
      'query/cql2-errors',
      'query/query-extension',
      'query/geometry-spatial-relations',
      'query/filter-parts',
      'query/parameters',
      'query/cql2-messages',
      'query/search',
    ],
    leaveOut: ['a ring that crosses itself', 'too deep, too long', ...SLOW_SEARCHES],
  },
  raster: {
    mutate: ['src/raster/{pixels/*,warp/!(bilinear-wasm)}.js', 'src/raster/write/overviews.js'],
    tests: [
      'raster/kernels',
      'raster/quality-mask',
      'raster/squares',
      'raster/warp-control-grid',
      'raster/warp-window',
      'raster/warp-edges',
      'raster/validity',
      'raster/warp-bilinear-wasm',
      'raster/warp',
    ],
    leaveOut: ['a large UTM scene', 'the SIMD kernel gives the same'],
  },
  expression: {
    mutate: ['src/expressions/{parser,program}.js'],
    tests: ['expressions/expressions'],
  },
  colours: {
    mutate: ['src/imagery/{colours,colormaps}.js'],
    tests: ['imagery/colours', 'imagery/class-colormaps'],
  },
  sampling: {
    mutate: ['src/imagery/{distributed-median,resample,viewport}.js'],
    tests: ['imagery/distributed-series-median', 'imagery/resampling-viewport', 'imagery/resample-band'],
  },
  derive: {
    mutate: ['src/derive/{cut-tile,fill-tile,gaps,split}.js'],
    tests: ['derive/derive-image-cache', 'derive/tile-pixels'],
  },
  metrics: {
    mutate: ['src/training/{evaluation,image-metrics}.js'],
    tests: [
      'training/evaluation/evaluate-predictions',
      'training/evaluation/evaluation-image-metrics',
      'training/evaluation/evaluation-image-scores',
    ],
    leaveOut: [
      'pixels that do not count have no say',
      '128 x 128',
      '200 x 181',
      'x 176',
      'of five scales',
      'have a PSNR of the whole patch',
    ],
  },
};
