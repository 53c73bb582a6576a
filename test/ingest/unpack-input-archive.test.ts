import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { unpackArchive } from '../../src/ingest/unpack.js';
import { DiskReserve } from '../../src/storage/disk.js';
import { type TarEntry, tar, type ZipEntry, zip } from '../support/archives.js';
import { smallDisk } from '../support/small-disk.js';
import { tempFolder } from '../support/temp.js';

const OPTIONS = { reserve: new DiskReserve(tmpdir(), 0) };

/** Writes archives into a fresh folder and unpacks them beside a file that must not change. */
async function bench(t: TestContext) {
  const folder = await tempFolder(t);
  const out = join(folder, 'inner', 'out');
  await mkdir(join(folder, 'inner'));
  await writeFile(join(folder, 'bystander'), 'untouched');
  const path = join(folder, 'archive');
  const unpackBytes = async (bytes: Buffer, options = {}) => {
    await writeFile(path, bytes);
    return unpackArchive(path, out, { ...OPTIONS, ...options });
  };
  /** The archive is refused with this code, and nothing of it is left. */
  const refused = async (bytes: Buffer, code: string, options = {}, what = '') => {
    await assert.rejects(unpackBytes(bytes, options), { code: `TW_INGEST_ARCHIVE_${code}` }, what);
    const left = (await readdir(folder, { recursive: true })).sort();
    assert.deepEqual(left, ['archive', 'bystander', 'inner'], what);
    assert.equal(await readFile(join(folder, 'bystander'), 'utf8'), 'untouched');
  };
  return { out, path, unpackBytes, refused };
}

test('a raster file compressed by gzip is unpacked under its own name, within the limits of archives', async (t) => {
  const { out, path, unpackBytes, refused } = await bench(t);
  const noise = randomBytes(300_000);
  const starts = { tiff: 'II*\0', netcdf: 'CDF\x01', hdf5: '\x89HDF\r\n\x1a\n', hdf4: '\x0e\x03\x13\x01' };
  for (const start of Object.values(starts)) {
    const content = Buffer.concat([Buffer.from(start, 'latin1'), noise]);
    // Members one after another are one file (RFC 1952, 2.2).
    const bytes = Buffer.concat([gzipSync(content.subarray(0, 1000)), gzipSync(content.subarray(1000))]);
    assert.deepEqual(await unpackBytes(bytes), ['archive']);
    assert.deepEqual(await readFile(join(out, 'archive')), content);
    await rm(out, { recursive: true });
    await refused(gzipSync(content).subarray(0, -9), 'BROKEN', {}, 'cut off');
    const damaged = gzipSync(content);
    damaged[damaged.length - 8]! ^= 1;
    await refused(damaged, 'BROKEN', {}, 'another checksum');
  }
  const tiff = Buffer.from('II*\0');
  const named = `${path}.TIF.GZ`;
  await writeFile(named, gzipSync(tiff));
  assert.deepEqual(await unpackArchive(named, out, OPTIONS), ['archive.TIF']);
  await rm(named);
  await rm(out, { recursive: true });
  await refused(gzipSync(Buffer.concat([tiff, Buffer.alloc(40e6)])), 'TOO_LARGE', {}, 'a bomb');
  for (const [what, other] of [
    ['text', 'no tar'],
    ['zip', zip([{ name: 'a.tif' }])],
    ['gzip', gzipSync(tiff)],
  ] as const)
    await refused(gzipSync(other), 'BROKEN', {}, what);
});

test('zip, tar and tar.gz are detected by their content and unpacked completely', async (t) => {
  const { out, unpackBytes } = await bench(t);
  const files: Record<string, Buffer> = {
    'a.txt': Buffer.from('a'),
    'folder/b.bin': Buffer.from(Array.from({ length: 700_000 }, (_, i) => (i * 7919) % 251)),
    'folder/deeper/ä.zip': zip([{ name: 'inside', content: 'an archive in an archive stays as it is' }]),
    'folder/empty': Buffer.alloc(0),
  };
  const entries = Object.entries(files).map(([name, content]) => ({ name, content }));
  const archives: Record<string, Buffer> = {
    zip: zip([{ name: 'folder/' }, ...entries, { name: 'stored', content: files['a.txt'], store: true }]),
    tar: tar([{ name: './', type: '5' }, ...entries.map((e) => ({ ...e, name: `./${e.name}` }))]),
    'tar.gz': gzipSync(tar([{ name: 'folder/', type: '5' }, ...entries])),
  };
  for (const [kind, bytes] of Object.entries(archives)) {
    const names = await unpackBytes(bytes);
    const stored = kind === 'zip' ? ['stored'] : [];
    assert.deepEqual(names, [...Object.keys(files), ...stored]);
    for (const [name, content] of Object.entries(files))
      assert.deepEqual(await readFile(join(out, name)), content, `${kind} ${name}`);
    await assert.rejects(unpackBytes(bytes), /is not empty/, 'a folder of others is not used, nor removed');
    assert.equal((await stat(join(out, 'a.txt'))).size, 1);
    execFileSync('rm', ['-r', out]);
  }
});

test('archives of Info-ZIP, Python and GNU tar are read', async (t) => {
  const { out, path } = await bench(t);
  const source = await tempFolder(t);
  await mkdir(join(source, 'sub'));
  await writeFile(join(source, 'sub', 'x'.repeat(180)), 'a long name');
  await writeFile(join(source, 'sub', 'ö.txt'), 'abc');
  const python = (code: string) => execFileSync('python3', ['-c', code, path, source]);
  const makers: Record<string, () => unknown> = {
    tar: () => execFileSync('tar', ['-cf', path, '-C', source, '.']),
    'tar -z --format=pax': () => execFileSync('tar', ['-czf', path, '--format=pax', '-C', source, 'sub']),
    zipfile: () => python('import sys,shutil; print(shutil.make_archive(sys.argv[1], "zip", sys.argv[2]))'),
  };
  for (const [name, make] of Object.entries(makers)) {
    try {
      make();
    } catch {
      t.diagnostic(`${name} is not installed here`);
      continue;
    }
    const archive = name === 'zipfile' ? `${path}.zip` : path;
    const files = await unpackArchive(archive, out, OPTIONS);
    assert.equal(files.length, 2, name);
    assert.equal(await readFile(join(out, 'sub', 'ö.txt'), 'utf8'), 'abc');
    execFileSync('rm', ['-r', out]);
  }
});

test('names that lead out of the folder are refused, in zip and tar', async (t) => {
  const { refused } = await bench(t);
  const names = [
    '../x',
    'a/../../x',
    '..',
    '/etc/x',
    '//x',
    'C:/x',
    'c:x',
    'a\\..\\x',
    '..\\x',
    'x'.repeat(256),
  ];
  names.push(`${'a/'.repeat(40)}x`, Array(5).fill('n'.repeat(250)).join('/'));
  for (const name of names) {
    await refused(
      zip([
        { name: 'good', content: 'x' },
        { name, content: 'x' },
      ]),
      'NAME',
      {},
      name,
    );
    if (name.length > 100) continue;
    await refused(
      tar([
        { name: 'good', content: 'x' },
        { name, content: 'x' },
      ]),
      'NAME',
      {},
      name,
    );
    await refused(tar([{ name, type: '5' }]), 'NAME', {}, name);
  }
  await refused(zip([{ name: 'a\0b', content: 'x' }]), 'NAME');
  const record = `${'24 path=../../../../../x\n'.length} path=../../../../../x\n`;
  await refused(
    tar([
      { name: 'pax', type: 'x', content: record },
      { name: 'a', content: 'x' },
    ]),
    'NAME',
    {},
    'pax',
  );
});

test('for any names, nothing is written outside of the folder', async (t) => {
  const { out, path } = await bench(t);
  const part = fc.constantFrom('..', '.', '', 'a', 'b', 'C:', '\\', '\0', '...', 'é', '~', 'a'.repeat(60));
  const name = fc.array(part, { minLength: 1, maxLength: 5 }).map((parts) => parts.join('/'));
  const before = (await readdir(join(out, '..', '..'), { recursive: true })).length;
  await fc.assert(
    fc.asyncProperty(fc.array(name, { minLength: 1, maxLength: 4 }), fc.boolean(), async (names, asZip) => {
      const entries = names.map((one) => ({ name: one, content: one }));
      const small = entries.filter(({ name }) => Buffer.byteLength(name) <= 100);
      await writeFile(path, asZip ? zip(entries) : tar(small));
      try {
        const files = await unpackArchive(path, out, OPTIONS);
        for (const file of files) assert.doesNotMatch(file, /(^|\/)\.\.(\/|$)|^\/|\\|\0/);
        execFileSync('rm', ['-r', out]);
      } catch (error) {
        assert.match(String((error as { code?: string }).code), /^TW_INGEST_ARCHIVE_/, String(error));
      }
      const after = (await readdir(join(out, '..', '..'), { recursive: true })).length;
      assert.ok(after <= before + 1, 'the archive itself');
    }),
    { seed: 42, numRuns: 150 },
  );
});

test('links, devices, duplicates and encrypted entries are refused', async (t) => {
  const { refused } = await bench(t);
  const good = { name: 'good', content: 'x' };
  for (const mode of [0o120777, 0o020666, 0o060666, 0o010666, 0o140777])
    await refused(zip([good, { name: 'l', content: '/etc/passwd', mode }]), 'LINK', {}, mode.toString(8));
  for (const type of ['1', '2', '3', '4', '6', 'S', 'Z'])
    await refused(tar([good, { name: 'l', type, linkname: '/etc/passwd' }]), 'LINK', {}, type);
  const twice: { name: string; content: string }[][] = [
    [good, good],
    [good, { name: './good', content: 'y' }],
    [good, { name: 'good/below', content: 'y' }],
    [
      { name: 'a/b', content: 'x' },
      { name: 'a', content: 'y' },
    ],
    [{ name: '.', content: 'x' }],
  ];
  for (const entries of twice) {
    await refused(zip(entries), 'TWICE', {}, JSON.stringify(entries));
    await refused(tar(entries), 'TWICE', {}, JSON.stringify(entries));
  }
  await refused(zip([good, { name: 'secret', content: 'x', flags: 0x801 }]), 'ENCRYPTED');
});

test('bombs are refused before they fill the disk', async (t) => {
  const { out, refused, unpackBytes } = await bench(t);
  const zeros = (megabytes: number) => Buffer.alloc(megabytes * 1e6);
  const large = { name: 'zeros', content: zeros(30) };
  await refused(zip([large]), 'TOO_LARGE', {}, 'ratio of a zip');
  await refused(gzipSync(tar([large])), 'TOO_LARGE', {}, 'ratio of a tar.gz');
  await refused(zip([{ ...large, size: 1000 }]), 'BROKEN', {}, 'more than it says');
  await refused(zip([{ name: 'a', content: 'x', size: 60e6 }]), 'TOO_LARGE', {}, 'declared');
  await refused(tar([{ name: 'a', size: 8e9 }]), 'TOO_LARGE', {}, 'declared');
  const many = Array.from({ length: 11 }, (_, i) => ({ name: `f${i}`, content: '' }));
  await refused(zip(many), 'TOO_LARGE', { maxEntries: 10 });
  await refused(tar(many), 'TOO_LARGE', { maxEntries: 10 });
  await refused(gzipSync(tar(Array(3000).fill({ name: 'd/', type: '5' }))), 'TOO_LARGE', {
    maxEntries: 2999,
  });
  await refused(gzipSync(zeros(60)), 'TOO_LARGE', { maxEntries: 10 }, 'zeros without an entry');
  const [empty] = await unpackBytes(zip([{ name: 'empty raster', content: zeros(9) }]));
  assert.equal((await stat(join(out, empty!))).size, 9e6, 'an empty raster is not taken for a bomb');
});

test('the disk reserve is checked for declared sizes and during unpacking', async (t) => {
  const disk = await smallDisk(t, 60);
  if (disk === undefined) return;
  const { path } = await bench(t);
  const reserve = new DiskReserve(disk, 30e6);
  const content = randomBytes(20e6);
  const low = { code: 'TW_STORAGE_DISK_LOW', status: 507 };
  for (const archive of [zip([{ name: 'a', content, store: true }]), tar([{ name: 'a', content }])]) {
    await writeFile(path, archive);
    const folders = [join(disk, '1'), join(disk, '2')];
    // Each of them fits alone.
    const ends = await Promise.allSettled(folders.map((out) => unpackArchive(path, out, { reserve })));
    const [failed] = ends.filter((end) => end.status === 'rejected');
    await assert.rejects(Promise.reject(failed?.reason), low);
    for (const folder of folders) await rm(folder, { recursive: true, force: true });

    await writeFile(join(disk, 'other'), Buffer.alloc(15e6));
    await assert.rejects(unpackArchive(path, folders[0], { reserve }), low);
    await rm(join(disk, 'other'));
    assert.deepEqual(await readdir(disk), []);
    await unpackArchive(path, folders[0], { reserve });
    await rm(folders[0], { recursive: true });
  }
});

test('truncated or damaged archives are refused, or their entries are unchanged', async (t) => {
  const { refused, unpackBytes, out } = await bench(t);
  const content = Buffer.from(Array.from({ length: 5000 }, (_, i) => (i * i) % 241));
  const entries = ['a', 'b', 'c'].map((name) => ({ name, content }));
  const sound: Record<string, Buffer> = {
    zip: zip(entries),
    tar: tar(entries),
    'tar.gz': gzipSync(tar(entries)),
  };
  for (const [kind, bytes] of Object.entries(sound)) {
    const cuts = Array.from({ length: 24 }, (_, i) => Math.floor((bytes.length * (i + 1)) / 25));
    // 5632 bytes are exactly one entry of the tar; at 16,896 only the end is missing.
    if (kind === 'tar') cuts.push(5632, 11_264, 16_896);
    for (const cut of cuts)
      await refused(
        bytes.subarray(0, cut),
        cut < 512 && kind === 'tar' ? 'UNKNOWN' : 'BROKEN',
        {},
        `${kind} ${cut}`,
      );
    for (let i = 0; i < 40; i++) {
      const damaged = Buffer.from(bytes);
      damaged[Math.floor((bytes.length * i) / 40)]! ^= 0x11;
      try {
        const files = await unpackBytes(damaged);
        if (kind !== 'tar')
          for (const file of files) assert.deepEqual(await readFile(join(out, file)), content);
        execFileSync('rm', ['-r', out]);
      } catch (error) {
        assert.match(
          String((error as { code?: string }).code),
          /^TW_INGEST_ARCHIVE_/,
          `${kind} ${i} ${error}`,
        );
      }
    }
  }
  const zeros = { name: 'zeros', content: Buffer.alloc(4096) };
  await refused(tar([zeros], { end: false }), 'BROKEN', {}, 'zeros are no end');
  await refused(zip([{ name: 'a', content, crc: 7 }]), 'BROKEN');
  await refused(Buffer.from('neither of them'), 'UNKNOWN');
  await refused(Buffer.alloc(0), 'UNKNOWN');
  await refused(gzipSync('no tar'), 'BROKEN');
});

test('an abort removes what was written', async (t) => {
  const { path, out } = await bench(t);
  const entries: (ZipEntry & TarEntry)[] = Array.from({ length: 40 }, (_, i) => ({
    name: `f${i}`,
    content: Buffer.alloc(200_000, i),
    store: true,
  }));
  for (const bytes of [zip(entries), tar(entries)]) {
    await writeFile(path, bytes);
    const controller = new AbortController();
    const work = unpackArchive(path, out, { ...OPTIONS, signal: controller.signal });
    const reason = new Error('enough');
    while ((await readdir(out).catch(() => [])).length < 3) await new Promise((next) => setImmediate(next));
    controller.abort(reason);
    await assert.rejects(work, reason);
    await assert.rejects(stat(out), { code: 'ENOENT' });
  }
  await assert.rejects(
    unpackArchive(path, out, { ...OPTIONS, signal: AbortSignal.abort(new Error('before')) }),
    /before/,
  );
});
