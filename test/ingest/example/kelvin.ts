/** Temperature maps of the invented satellite Kelvin-1: a GeoTIFF of two bands, with mission, orbit and time in its tags. */

import { groupBands } from '../../../src/ingest/bands.js';
import { noDatetime } from '../../../src/ingest/errors.js';
import { parseTime } from '../../../src/ingest/formats/acquisition-time.js';
import { matchesRaster } from '../../../src/ingest/formats/probe.js';
import { bitAt, buildQualityLookup } from '../../../src/ingest/formats/quality.js';
import { nominalPixelSize } from '../../../src/ingest/georeferencing.js';
import type { ProductFormat } from '../../../src/ingest/scene.js';
import { Mask } from '../../../src/raster/index.js';

export const kelvin: ProductFormat = {
  name: 'Kelvin-1',

  async identify(candidate) {
    if (candidate.fileType !== 'tiff') return false;
    return matchesRaster(candidate, ({ metadata }) => metadata.MISSION === 'KELVIN-1');
  },

  async describe({ path, header: open }) {
    const header = await open();
    const { ORBIT = '0', SENSED = '' } = header.metadata;
    const start = parseTime(SENSED);
    if (Number.isNaN(start)) throw noDatetime(path);
    const whole = { header, resolution: nominalPixelSize(header) };
    const groups = groupBands([
      // Hundredths of a kelvin; 0 means no data.
      {
        ...whole,
        name: 'lwir',
        commonName: 'lwir',
        index: 0,
        role: 'data',
        nodata: 0,
        scale: 0.01,
        offset: 0,
      },
      { ...whole, name: 'quality', index: 1, role: 'qa', nodata: null, scale: 1, offset: 0 },
    ]);
    // Bit 0 is cloud, bit 1 its shadow.
    const quality = buildQualityLookup(groups, 'quality', (value) =>
      bitAt(value, 0) ? Mask.cloud : bitAt(value, 1) ? Mask.shadow : Mask.clear,
    );
    const scene = {
      path,
      id: `K1_${ORBIT}_${SENSED.slice(0, 10)}`,
      collection: { id: 'kelvin', title: 'Kelvin-1 temperature', license: 'CC-BY-4.0' },
      platform: 'kelvin-1',
      start,
      end: start,
      groups,
      quality: quality ? [quality] : [],
      reflectanceTest: false,
      warnings: [],
    };
    return [scene];
  },
};
