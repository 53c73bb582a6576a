import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type TemporalOp, temporalConverse, temporalRelations } from '../../src/query/operators.js';
import { allen } from './oracle.js';

const ops = Object.keys(temporalRelations) as TemporalOp[];
const periods = [0, 1, 2, 3].flatMap((start) =>
  [0, 1, 2, 3].map((length) => [start, start + length] as const),
);

test('every temporal function matches its diagram, and its converse with swapped arguments', () => {
  for (const op of ops) {
    let held = 0;
    for (const [a, aEnd] of periods) {
      for (const [b, bEnd] of periods) {
        const holds = temporalRelations[op](a, aEnd, b, bEnd);
        if (holds) held++;
        assert.equal(holds, allen(op, a, aEnd, b, bEnd), `${op} ${a} ${aEnd} ${b} ${bEnd}`);
        assert.equal(holds, temporalRelations[temporalConverse[op]](b, bEnd, a, aEnd), op);
      }
    }
    assert.ok(held > 0, op);
  }
});
