import { Client } from './dist/src/client/index.js';
import { inProcessTransport } from './dist/src/cli/cli-connection.js';
import { openNode } from './dist/src/node.js';
import { mkdtempSync, rmSync } from 'node:fs';
import { loadEngine } from './dist/src/engines/load-engine.js';
import { selectEngine } from './dist/src/engines/index.js';
import { getModelSpec, TextureIndex } from './dist/src/training/index.js';
import { plantPlaces, ingestReal } from './dist/bench/transfer/places.js';
import { placesOf, startOf, startsOfOthers, curveOf } from './dist/bench/transfer/curves.js';
import { scoresOf, bestInHindsight } from './dist/bench/transfer/scores.js';
Object.assign(process.env, { OMP_NUM_THREADS: '1', OMP_WAIT_POLICY: 'passive' });
const [model, where, seedsText, factorsText, epochsText] = process.argv.slice(2);
const seeds = seedsText.split(',').map(Number), factors = factorsText.split(',').map(Number), epochs = Number(epochsText);
const folder = mkdtempSync('/tmp/xfer-');
const node = await openNode({ data: folder + '/data', memory: 4e9, cores: 1, reserve: 0 });
const client = new Client(inProcessTransport(node));
const { tf } = await loadEngine((await selectEngine({})).name);
const med = (v) => { const s = [...v].sort((a, b) => a - b); return s[Math.floor(s.length / 2)]; };
const gm = (v) => Math.exp(v.reduce((a, b) => a + Math.log(b), 0) / v.length);
let few, collections;
if (where === 'planted') { const kinds = await plantPlaces(client, 'planted', 5, folder + '/scenes'); few = model === 'ndvi' ? undefined : [...kinds.keys()].slice(0, 6); collections = ['planted']; } else collections = await ingestReal(client);
const RATES = { 'ndvi planted': 2e-3, 'ndmi planted': 4e-3, 'ndvi landsat8-cloudy': 2e-2, 'ndvi landsat7-olinda': 1e-2 };
for (const collection of collections) {
  await client.run('texture', { filter: { collections: [collection] } });
  const spec0 = getModelSpec(model);
  const all = await placesOf(node.storage, collection, spec0);
  const places = few ? all.filter(({ place }) => few.includes(place.geocode)) : all;
  process.env.WARM = '1';
  await client.run('train', { model, epochs, seed: 100, filter: { collections: [collection] } });
  const textures = new TextureIndex(node.storage);
  const curves = [];
  const spec = { ...spec0, learningRate: RATES[`${model} ${collection}`] };
  for (const seed of seeds) {
    const run = async (name, policy, f) => { process.env.WARM = String(f); const start = await startOf(node.storage, textures, model, { name: policy === 'none' ? 'none' : name, policy }, seed); for (const p of places) curves.push(await curveOf(tf, node.storage, p, start, { spec, seed, epochs })); };
    await run('none', 'none', 1);
    for (const f of factors) { { await run(`probe x${f}`, 'probe', f); } }
    console.error(collection, seed);
  }
  const fresh = new Map(); for (const c of curves.filter((c) => c.start === 'none')) fresh.set(c.geocode, [...(fresh.get(c.geocode) ?? []), Math.min(...c.losses)]);
  for (const s of scoresOf(curves)) {
    const own = curves.filter((c) => c.start === s.start);
    const rel = (i) => med(own.map((c) => c.losses[i] / med(fresh.get(c.geocode))));
    console.log(model, collection, s.start, 'epochs', med(s.epochs), 'reached', s.epochs.filter(Number.isFinite).length + '/' + s.epochs.length, 'cpu', med(s.cpu).toFixed(3), 'least', med(s.least).toFixed(3), 'gm', gm(s.least).toFixed(3), 'curve', [0, 1, 2, 4, 9, epochs - 1].map((i) => rel(i).toFixed(2)).join(' '));
  }
}
await node.close(); rmSync(folder, { recursive: true });
