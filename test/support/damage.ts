import { join } from 'node:path';
import { Level } from 'level';

/** Flips a bit in the middle of records, named as `!table!key`, of a data folder that no process has open. */
export async function damageRecords(dir: string, ...names: string[]): Promise<void> {
  const db = new Level<string, Buffer>(join(dir, 'catalogue'), { valueEncoding: 'buffer' });
  for (const name of names) {
    const value = (await db.get(name))!;
    value[value.length >> 1]! ^= 1;
    await db.put(name, value);
  }
  await db.close();
}
