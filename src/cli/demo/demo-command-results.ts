/** Gathers the data of the report from the storage and from the results of the jobs. */
import { arch, availableParallelism, cpus, platform, totalmem } from 'node:os';
import type { ItemCollection } from '../../client/index.js';
import { type DemoReport, type ReportModel, type ReportTile, shownTiles } from '../../demo-report/index.js';
import { cellBbox, gridByName } from '../../grid/index.js';
import type { IngestResults } from '../../ingest/index.js';
import type { Timed } from '../../jobs/index.js';
import { isoTime } from '../../query/index.js';
import type { CollectionRecord, Storage, TileRecord } from '../../storage/index.js';
import type { ModelCard, TrainResults } from '../../training/index.js';
import { renderPreview } from './demo-tile-preview.js';

interface DemoResults {
  collection: CollectionRecord;
  ingest: IngestResults;
  everything: ItemCollection;
  picked: ItemCollection;
  train: Timed<TrainResults>;
  query: { command: string; description: string };
  next: string[];
}

export async function gatherReport(storage: Storage, results: DemoResults): Promise<DemoReport> {
  const { collection, ingest, everything, picked, train, query, next } = results;
  const pickedIds = new Set(picked.features.map(({ id }) => id));
  const records = await storage.getTiles(everything.features.map(({ id }) => id));
  const tiles = records.map((tile) => reportTile(tile, pickedIds.has(tile.id)));
  for (const shown of shownTiles(tiles)) {
    const record = records.find(({ id }) => id === shown.id);
    if (record) shown.preview = await renderPreview(storage, record);
  }
  return {
    title: 'From a satellite scene to a model for each place',
    generatedAt: new Date().toISOString(),
    machine: machine(),
    collection,
    scenes: ingest.scenes.map((scene) => reportScene(scene, records)),
    tiles,
    query: { ...query, matched: picked.numberMatched, total: everything.numberMatched },
    training: {
      engine: train.engine,
      seconds: train.seconds,
      epochs: train.models[0]?.epochs ?? 0,
      models: await Promise.all(train.models.map((model) => reportModel(storage, model.id))),
      skipped: train.skipped,
      pooled: train.pooled,
    },
    next,
  };
}

function reportTile(tile: TileRecord, picked: boolean): ReportTile {
  const { id, geocode, scene, coverage, cloudCover } = tile;
  const bbox = cellBbox(gridByName(tile.grid), geocode);
  return { id, geocode, scene, time: isoTime(tile.start), bbox, coverage, cloudCover, picked };
}

function reportScene(
  scene: IngestResults['scenes'][number],
  tiles: TileRecord[],
): DemoReport['scenes'][number] {
  const { id, collection, warnings } = scene;
  const first = tiles.find((tile) => tile.scene === id);
  const groups = first?.groups.filter(({ role }) => role === 'data') ?? [];
  return {
    id,
    collection,
    time: isoTime(first?.start ?? 0),
    platform: first?.platform ?? null,
    bands: groups.flatMap((group) => group.bands.map(({ name }) => name)),
    size: groups.map(({ name, width, height }) => `${name}: ${width} x ${height} px a tile`).join(', '),
    tiles: scene.tiles,
    warnings,
  };
}

async function reportModel(storage: Storage, id: string): Promise<ReportModel> {
  const model = await storage.models.get(id);
  if (!model) throw new Error(`the model ${id} was not stored`);
  const { losses, metrics, baseline, predictions, patches, seconds }: Required<ModelCard> = JSON.parse(
    (await storage.models.readFile(model, 'card.json')).toString(),
  );
  const bbox = cellBbox(gridByName(model.grid), model.geocode);
  return { geocode: model.geocode, bbox, losses, metrics, baseline, predictions, patches, seconds };
}

function machine(): string {
  const memory = `${Math.round(totalmem() / 1e9)} GB`;
  return `${cpus()[0]?.model.trim() ?? arch()}, ${availableParallelism()} cores, ${memory}, ${platform()}, Node ${process.version}`;
}
