/** Providers of the products for STAC Collections (STAC 1.0.0, Provider Object). */
import type { SceneCollection } from '../scene.js';

type Provider = NonNullable<SceneCollection['providers']>[number];

export const ESA: Provider = {
  name: 'European Space Agency',
  roles: ['producer', 'processor'],
  url: 'https://sentinels.copernicus.eu',
};

export const COPERNICUS: Provider = {
  name: 'European Union, Copernicus Programme',
  roles: ['licensor'],
  url: 'https://www.copernicus.eu',
};

export const DLR: Provider = {
  name: 'German Aerospace Center (DLR)',
  roles: ['producer', 'processor', 'licensor'],
  url: 'https://www.enmap.org',
};

export const ASI: Provider = {
  name: 'Italian Space Agency (ASI)',
  roles: ['producer', 'processor', 'licensor'],
  url: 'https://www.asi.it',
};

export const NASA: Provider = { name: 'NASA', roles: ['producer', 'licensor'], url: 'https://www.nasa.gov' };

export const LP_DAAC: Provider = {
  name: 'NASA Land Processes Distributed Active Archive Center',
  roles: ['processor'],
  url: 'https://lpdaac.usgs.gov',
};

export const NSIDC: Provider = {
  name: 'NASA National Snow and Ice Data Center Distributed Active Archive Center',
  roles: ['processor'],
  url: 'https://nsidc.org',
};

export const USGS: Provider = {
  name: 'U.S. Geological Survey',
  roles: ['producer', 'processor', 'licensor'],
  url: 'https://www.usgs.gov',
};

export const MRLC: Provider = {
  name: 'Multi-Resolution Land Characteristics Consortium',
  roles: ['producer'],
  url: 'https://www.mrlc.gov',
};

export const USDA: Provider = {
  name: 'U.S. Department of Agriculture',
  roles: ['producer', 'licensor'],
  url: 'https://www.usda.gov',
};

export const CLIMATOLOGY_LAB: Provider = {
  name: 'Climatology Lab, University of California, Merced',
  roles: ['producer', 'licensor'],
  url: 'https://www.climatologylab.org',
};
